// A process for telemetry.test.ts: answers GET /.well-known/jwks.json, each time in a span of its own.
import { jwks } from '@content-platform/contract';
import { commonConfig, createService, handle, readConfig, run } from '../index.ts';

await run(
  'auth',
  () => readConfig(commonConfig(8090), process.env),
  async ({ logger, metrics }) => {
    const tokens = { verify: () => Promise.reject(new Error('nobody asks for a token')) };
    const answer = handle(jwks, () => ({ status: 200 as const, body: { keys: [] } }));
    return { app: createService({ name: 'auth', logger, metrics, tokens }, [answer]), checks: {} };
  },
);
