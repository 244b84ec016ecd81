// A process for run.test.ts and telemetry.test.ts: serves GET /.well-known/jwks.json, each in a span. The header X-Takes
// delays the reply by its value in ms; the header X-Fails makes it fail. Its argument is the grace period in ms.
import { setTimeout as sleep } from 'node:timers/promises';
import { jwks } from '@content-platform/contract';
import { commonConfig, createService, handle, run } from '../index.ts';

await run('auth', commonConfig(8090), async ({ logger, metrics, onStop }) => {
  onStop(() => process.stdout.write('closed\n'));
  const tokens = { verify: () => Promise.reject(new Error('the endpoint is public')) };
  const answer = handle(jwks, async ({ header }) => {
    if (header('x-takes')) process.stdout.write('working\n');
    await sleep(Number(header('x-takes') ?? 0));
    if (header('x-fails')) throw new Error('requested by X-Fails');
    return { status: 200 as const, body: { keys: [] } };
  });
  const [, , gracePeriodMs] = process.argv;
  return {
    app: createService({ name: 'auth', logger, metrics, tokens }, [answer]),
    checks: {},
    ...(gracePeriodMs ? { gracePeriodMs: Number(gracePeriodMs) } : {}),
  };
});
