import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { follow } from '../../test/support/redis-replication.ts';
import { startRedis, type RedisServer } from '../../test/support/redis-server.ts';
import { until } from '../../test/support/wait.ts';
import { startWorld, type World } from './testing/world.ts';

let world: World;
let replica: RedisServer;
beforeAll(async () => {
  [world, replica] = await Promise.all([startWorld(), startRedis({ 'repl-diskless-sync-delay': '0' })]);
  await world.redis.admin.config('SET', 'repl-diskless-sync-delay', '0');
  await follow(replica, world.redis);
});
afterAll(async () => {
  await world.close();
  await replica.stop();
});

test('a Redis with a replica that is not counted on is told of once, with what to set', async () => {
  const service = await world.service();
  const warnings = () => service.log.filter(({ message }) => String(message).includes('CACHE_MIN_REPLICAS'));
  await until('the warning', () => warnings().length > 0);
  expect(warnings()).toMatchObject([
    { level: 'warn', message: expect.stringMatching(/1 replica: set .* to 1 \(they are 0 and 0\)/) },
  ]);
  await service.stop();
});

test('where both ask for it nothing is said', async () => {
  await world.redis.admin.config('SET', 'min-replicas-to-write', '1');
  const service = await world.service({ env: { CACHE_MIN_REPLICAS: '1' } });
  await until('the cache is in use', () => service.log.some(({ state }) => state === 'usable'));
  // Longer than until the second look, which the first service was told at the latest.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(service.log.filter(({ level }) => level !== 'info')).toEqual([]);
  await service.stop();
});
