// A preload for telemetry.test.ts: prints what is loaded of OpenTelemetry, but for its API, which prom-client brings.
import { registerHooks } from 'node:module';

registerHooks({
  load(url, context, next) {
    if (url.includes('opentelemetry') && !url.includes('/api/')) process.stdout.write(`loaded ${url}\n`);
    return next(url, context);
  },
});
