import { beforeAll, expect, test } from '@jest/globals';
import { follow } from '../../test/support/redis-replication.ts';
import { startRedis } from '../../test/support/redis-server.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { read, useTestStores } from './testing/test-stores.ts';

const world = useTestStores();
const replica = useStarted(() => startRedis({ 'repl-diskless-sync-delay': '0' }));
beforeAll(async () => {
  await world.redis.admin.config('SET', 'repl-diskless-sync-delay', '0');
  await follow(replica, world.redis);
});

test('does not use a Redis that has fewer replicas than CACHE_MIN_REPLICAS', async () => {
  const service = await world.service({ env: { CACHE_MIN_REPLICAS: '2' } });
  expect(await service.check('redis')).toBe(false);
  expect(JSON.stringify(service.log)).toContain('CACHE_MIN_REPLICAS is 2');
  await service.stop();
});

test('does not use a Redis whose replica is silent for longer than CACHE_REPLICA_MAX_LAG', async () => {
  const service = await world.service({ env: { CACHE_MIN_REPLICAS: '1', CACHE_REPLICA_MAX_LAG: '7' } });
  const reads = (outcome: string) => async () => (await read(service, 'webform', 1)).cache === outcome;
  await until('it is cached', reads('hit')).then(replica.pause);
  const paused = performance.now();
  await until('reads bypass the cache', reads('bypass')).finally(replica.resume);
  expect(performance.now() - paused).toBeGreaterThan(5_000);
});

test('logs what to set for a replica that the cache does not count', async () => {
  const service = await world.service();
  const warnings = () => service.log.filter(({ message }) => String(message).includes('CACHE_MIN_REPLICAS'));
  await until('the warning is logged', () => warnings().length > 0);
  expect(warnings()).toMatchObject([
    { level: 'warn', message: expect.stringMatching(/1 replica: set .* to 1 \(they are 0 and 0\)/) },
  ]);
  await service.stop();
});
