import { expect, test } from '@jest/globals';
import { startService } from '../../test/support/programs.ts';
import { until } from '../../test/support/wait.ts';
import { createTestTokens } from './testing/tokens.ts';
import { useTestStores } from './testing/test-stores.ts';

const world = useTestStores();

const start = (env: Record<string, string>) =>
  startService('services/content-cache/main.ts', { env: { DATABASE_URL: world.databaseUrl, ...env } });

test('refuses to start if the Redis user may not call INFO', async () => {
  await world.redis.admin.call('ACL', 'SETUSER', 'blind', 'on', '>secret', '~*', '+@all', '-info');
  const { ended } = await start({ REDIS_URL: `redis://blind:secret@127.0.0.1:${world.redis.port}` });
  const { code, stderr } = await ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(/^content-cache: REDIS_URL: .*INFO.*\n$/);
});

test('is ready but degraded without Redis and Kafka, and stops in time', async () => {
  const { authUrl, close } = await createTestTokens();
  const { child, internal, ended } = await start({
    AUTH_URL: authUrl,
    AUTH_INTERNAL_URL: authUrl,
    REDIS_URL: 'redis://127.0.0.1:1',
    KAFKA_BROKERS: '127.0.0.1:1',
  });
  const health = await until('it is ready', async () => {
    const response = await fetch(`${internal}/health/ready`);
    return response.status === 200 && response.json();
  });
  const checks = { postgres: 'ok', tokens: 'ok', redis: 'unavailable', kafka: 'unavailable' };
  expect(health).toEqual({ status: 'degraded', checks });
  child.kill('SIGTERM');
  // 1 if the process had to be killed after 10 s.
  expect(await ended).toMatchObject({ code: 0 });
  close();
});
