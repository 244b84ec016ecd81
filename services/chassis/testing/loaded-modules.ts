// A preload for telemetry.test.ts: prints the loaded modules of OpenTelemetry, except its API, which prom-client loads.
import { registerHooks } from 'node:module';

registerHooks({
  load(url, context, next) {
    if (url.includes('opentelemetry') && !url.includes('/api/')) process.stdout.write(`loaded ${url}\n`);
    return next(url, context);
  },
});
