import { expect, test } from '@jest/globals';
import type { EventEmitter } from 'node:events';
import { createLogger } from '../logger.ts';
import { createRedis, type RedisClient } from '../redis.ts';
import { calledAfterEach } from '../../../test/support/called-after-each.ts';
import { startCluster } from '../../../test/support/redis-cluster.ts';
import { startReplication } from '../../../test/support/redis-replication.ts';
import { until } from '../../../test/support/wait.ts';

const closing = calledAfterEach();

async function openCluster() {
  const cluster = await startCluster({ replicas: 0 });
  closing.push(cluster.stop);
  const { redis } = open(cluster.url);
  await until('it is connected', async () => (await redis.ping()) === 'PONG');
  return { cluster, redis };
}

function open(url: string): { redis: RedisClient; lines: string[] } {
  const lines: string[] = [];
  const logger = createLogger('auth', 'info', { write: (line) => void lines.push(JSON.parse(line).message) });
  const redis = createRedis(url, logger);
  closing.push(() => redis.disconnect());
  return { redis, lines };
}

test('with sentinels uses the primary and, after a failover, the new one', async () => {
  const stores = await startReplication(1, { password: 'secret' });
  closing.push(stores.stop);
  const { redis, lines } = open(stores.url);
  await until('it is connected', async () => (await redis.set('a', 1)) === 'OK');
  expect(await stores.servers[0]!.admin.get('a')).toBe('1');

  await stores.servers[0]!.kill();
  await until('the new primary is used', async () => (await redis.set('b', 2)) === 'OK');
  expect(await stores.servers[1]!.admin.get('b')).toBe('2');
  expect(lines).toEqual(['Redis unreachable', 'Redis reachable again']);
});

test('a hanging sentinel does not delay the others', async () => {
  const stores = await startReplication(1);
  closing.push(stores.stop);
  stores.sentinels[0]!.pause();
  const { redis } = open(stores.url);
  await until('it is connected', async () => (await redis.set('a', 1)) === 'OK');
});

test('in a cluster sends each key to its node, also after its slot has moved', async () => {
  const { cluster, redis } = await openCluster();
  const keys = Array.from({ length: 30 }, (_, index) => `key-${index}`);
  // A busy machine may miss the time limit of a command.
  for (const key of keys) await until('it is written', () => redis.set(key, key));
  const counts = await Promise.all(cluster.primaries.map(({ admin }) => admin.dbsize()));
  expect(counts.every((count) => count > 0)).toBe(true);

  const slot = await cluster.slotOf('key-0');
  const from = (await cluster.ownerOf('key-0'))!;
  const to = cluster.primaries.find((node) => node !== from)!;
  await cluster.beginMove(slot, from, to);
  await cluster.moveKeys(slot, from, to);
  expect(await until('the key is readable', () => redis.get('key-0'))).toBe('key-0');
  await cluster.endMove(slot, from, to);
  expect(await until('it has moved', () => redis.get('key-0'))).toBe('key-0');
});

test('in a cluster an unavailable primary fails the commands of its own keys immediately, and no others', async () => {
  const { cluster, redis } = await openCluster();
  const [stopped, ...others] = cluster.primaries;
  await stopped!.kill();
  const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  const slots = await Promise.all(keys.map((key) => others[0]!.admin.cluster('KEYSLOT', key)));
  const isOnStopped = (slot: unknown) => Number(slot) < 5461;
  expect(new Set(slots.map(isOnStopped)).size).toBe(2);
  for (const [index, key] of keys.entries()) {
    if (isOnStopped(slots[index])) {
      const began = performance.now();
      await expect(redis.set(key, 1)).rejects.toThrow();
      expect(performance.now() - began).toBeLessThan(5_000);
    } else await until('it is written', () => redis.set(key, 1));
  }

  await stopped!.restart();
  await until('it is used again', async () => (await redis.set('b', 2)) === 'OK');
});

test('in a cluster reconnects, also when its last connection ends while it connects', async () => {
  const { redis } = await openCluster();
  const { connectionPool } = redis as unknown as { connectionPool: EventEmitter };
  redis.once('connecting', () => connectionPool.emit('drain'));
  redis.disconnect(true);
  await until('the client is stuck in close', () => redis.status === 'close', 10_000);
  await until('the client has reconnected', async () => (await redis.ping()) === 'PONG', 10_000);
});
