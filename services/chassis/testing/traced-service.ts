// A process for telemetry.test.ts: serves GET /.well-known/jwks.json, each in a span. The header X-Takes delays the reply
// by its value in ms; the header X-Fails makes it fail.
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
