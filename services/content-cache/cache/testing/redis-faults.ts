import { readdir, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from './random.ts';
import type { RedisServer } from '../../../../test/support/redis-server.ts';

export type RedisFault = keyof typeof redisFaults;

/** Faults of a Redis server. Each resolves when Redis responds again. */
const redisFaults = {
  /** Usually longer than a command's timeout. */
  async hang(redis: RedisServer, random: Random) {
    redis.pause();
    await sleep(100 + random() * 600);
    redis.resume();
  },
  /** Restarts from a snapshot: later clears are undone. */
  async crash(redis: RedisServer, random: Random) {
    await redis.admin.save();
    await sleep(random() * 400);
    await redis.kill();
    await redis.restart();
  },
  /** Restarts without the end of its append-only file (`appendonly yes`): the last clears are undone. */
  async cutTail(redis: RedisServer, random: Random) {
    await redis.kill();
    const folder = join(redis.dir, 'appendonlydir');
    for (const name of await readdir(folder)) {
      if (!name.endsWith('.incr.aof')) continue;
      const { size } = await stat(join(folder, name));
      await truncate(join(folder, name), Math.max(0, size - Math.floor(random() * 300_000)));
    }
    await redis.restart();
  },
  async forgetScripts(redis: RedisServer) {
    await redis.admin.script('FLUSH');
  },
  /** Deletes half of our keys at random, ten times. */
  async evict(redis: RedisServer, random: Random) {
    for (let count = 0; count < 10; count += 1) {
      const keys = (await redis.admin.keys('*')).filter((key) => !key.startsWith('other:'));
      const some = keys.filter(() => random() < 0.5);
      if (some.length > 0) await redis.admin.del(...some);
      await sleep(random() * 20);
    }
  },
  /** Another program fills the memory: Redis evicts random keys, and refuses writes if that is not enough. */
  async runFull(redis: RedisServer, random: Random) {
    const used = Number(/used_memory:(\d+)/.exec(await redis.admin.info('memory'))![1]);
    await redis.admin.config('SET', 'maxmemory-policy', 'allkeys-random');
    await redis.admin.config('SET', 'maxmemory', used + 100_000);
    const value = 'x'.repeat(1_000);
    for (let key = 0; key < 400; key += 1) {
      await redis.admin.set(`other:${key}`, value).catch(() => undefined);
      if (key % 20 === 0) await sleep(random() * 40);
    }
    await redis.admin.config('SET', 'maxmemory', 0);
  },
  async dropConnections(redis: RedisServer) {
    await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal');
  },
};

/** Yields every kind once in random order, then again in another order, until `over`. */
export function* inShuffledRounds<T>(kinds: readonly T[], random: Random, over: AbortSignal): Generator<T> {
  const shuffled = () =>
    kinds
      .map((kind) => ({ kind, at: random() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ kind }) => kind);
  yield* shuffled();
  for (;;) {
    for (const kind of shuffled()) {
      if (over.aborted) return;
      yield kind;
    }
  }
}

/** The pause after each fault, in which caches recover and fill. */
export const calmMs = 2_500;

/** Injects each fault in turn until `over`. Returns the number of faults of each kind. */
export async function injectFaults(
  redis: RedisServer,
  kinds: readonly RedisFault[],
  random: Random,
  over: AbortSignal,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const kind of inShuffledRounds(kinds, random, over)) {
    await sleep(300 + random() * 200);
    await redisFaults[kind](redis, random);
    counts[kind] = (counts[kind] ?? 0) + 1;
    await sleep(calmMs * (1 + random() * 0.3));
  }
  return counts;
}
