// A process for telemetry.test.ts: answers GET /.well-known/jwks.json, each time in a span of its own. It takes as long
// as the header X-Takes says, in ms, and fails when there is a header X-Fails.
import { setTimeout as sleep } from 'node:timers/promises';
import { jwks } from '@content-platform/contract';
import { commonConfig, createService, handle, readConfig, run } from '../index.ts';

await run(
  'auth',
  () => readConfig(commonConfig(8090), process.env),
  async ({ logger, metrics }) => {
    const tokens = { verify: () => Promise.reject(new Error('nobody asks for a token')) };
    const answer = handle(jwks, async ({ header }) => {
      await sleep(Number(header('x-takes') ?? 0));
      if (header('x-fails')) throw new Error('as told');
      return { status: 200 as const, body: { keys: [] } };
    });
    return { app: createService({ name: 'auth', logger, metrics, tokens }, [answer]), checks: {} };
  },
);
