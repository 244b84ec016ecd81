import { setTimeout as sleep } from 'node:timers/promises';

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';

import { createCacheConnection } from './connect.ts';
import type { ContentCache } from './index.ts';
import { createRecordCache, type CacheRead } from './record-cache.ts';
import { startCache } from './testing/caches.ts';
import { loadNothing, loadVersion, recordOf } from './testing/loaders.ts';
import { startRedis, type RedisServer } from '../../../test/support/redis-server.ts';
import { until } from '../../../test/support/wait.ts';

let redis: RedisServer;
let cache: ContentCache;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.admin.flushall();
  cache = await startCache(redis.url);
});
afterEach(() => cache.close());

const fieldsOf = (key: string) => redis.admin.hgetall(key);
const ttlOf = async (key: string) => Number((await fieldsOf(key))['full:expiry']) - Date.now();

test('the first read is a miss, the next one a hit without the database', async () => {
  expect(await cache.read('webform', 12, 'full', loadVersion(1))).toEqual({
    outcome: 'miss',
    record: recordOf(1),
  });
  expect(await cache.read('webform', 12, 'full', loadNothing)).toEqual({
    outcome: 'hit',
    record: recordOf(1),
  });
});

test('views, records and models do not mix', async () => {
  await cache.read('webform', 12, 'full', loadVersion(1));
  for (const [model, id, view] of [
    ['webform', 12, 'summary'],
    ['webform', 1, 'full'],
    ['pathway', 12, 'full'],
  ] as const) {
    expect(await cache.read(model, id, view, loadVersion(2))).toMatchObject({ outcome: 'miss' });
  }
});

test('that a record does not exist is cached, for a shorter time, and counts as a cached view', async () => {
  expect(await cache.read('webform', 404, 'full', async () => null)).toEqual({
    outcome: 'miss',
    record: null,
  });
  expect(await cache.read('webform', 404, 'full', loadNothing)).toEqual({ outcome: 'hit', record: null });
  expect(await ttlOf('webform:404')).toBeLessThanOrEqual(33_000);
  expect(await cache.clearModel('webform', 404)).toBe(1);
  expect(await cache.read('webform', 404, 'full', loadVersion(1))).toMatchObject({ outcome: 'miss' });
});

test('the time to live is spread by a tenth to both sides', async () => {
  const ids = Array.from({ length: 200 }, (_, index) => index + 1);
  await Promise.all(ids.map((id) => cache.read('webform', id, 'full', loadVersion(1))));
  const ttls = await Promise.all(ids.map((id) => ttlOf(`webform:${id}`)));
  expect(Math.max(...ttls)).toBeLessThanOrEqual(330_000);
  expect(Math.max(...ttls)).toBeGreaterThan(310_000);
  // Seconds may have passed since the fills.
  expect(Math.min(...ttls)).toBeLessThan(290_000);
  expect(Math.min(...ttls)).toBeGreaterThan(255_000);
});

test('an entry past its time is read from the database again', async () => {
  const brief = await startCache(redis.url, { ttlMs: 100 });
  await brief.read('webform', 12, 'full', loadVersion(1));
  await until('the entry to expire', async () => {
    return (await brief.read('webform', 12, 'full', loadVersion(2))).record?.version === 2;
  });
  await brief.close();
});

test('the database is read under a lease', async () => {
  let underLease = false;
  await cache.read('webform', 12, 'full', async () => {
    underLease = (await redis.admin.hexists('webform:12', 'full:lease')) === 1;
    return recordOf(1);
  });
  expect(underLease).toBe(true);
});

test('1,000 readers of one cold record are one read of the database', async () => {
  const load = loadVersion(1, 10);
  const reads = await Promise.all(
    Array.from({ length: 1000 }, () => cache.read('webform', 12, 'full', load)),
  );
  expect(load.calls).toBe(1);
  expect(reads.filter(({ outcome }) => outcome === 'miss')).toHaveLength(1);
  expect(reads.every(({ record }) => record?.version === 1)).toBe(true);
});

test('however many read, a clear has few of their payloads before it on the connection', async () => {
  const connection = createCacheConnection({ url: redis.url, recover: async () => {} });
  await connection.start();
  const inFlight = { read: 0, fill: 0 };
  const most = { read: 0, fill: 0 };
  const counted = <T>(kind: 'read' | 'fill', reply: Promise<T>): Promise<T> => {
    most[kind] = Math.max(most[kind], (inFlight[kind] += 1));
    return reply.finally(() => (inFlight[kind] -= 1));
  };
  const records = createRecordCache({
    ttlMs: 60_000,
    negativeTtlMs: 60_000,
    connection: {
      forReading(key) {
        const node = connection.forReading(key);
        return {
          ...node,
          read: (...question) => counted('read', node.read(...question)),
          fill: (...entry) => counted('fill', node.fill(...entry)),
        };
      },
    },
  });
  const ids = Array.from({ length: 100 }, (_, index) => index + 1);
  await Promise.all(ids.map((id) => records.read('webform', id, 'full', loadVersion(1))));
  await Promise.all(ids.map((id) => records.read('webform', id, 'full', loadNothing)));
  expect(Math.max(most.read, most.fill)).toBeLessThanOrEqual(8);
  await connection.close();
});

test('a reader is not served by a question that was asked before it came', async () => {
  const connection = createCacheConnection({ url: redis.url, recover: async () => {} });
  await connection.start();
  let waits = 0;
  const hit = Promise.withResolvers<void>();
  const handOver = Promise.withResolvers<void>();
  // Its first hit, the answer to those who wait, is on its way for long.
  const slow = createRecordCache({
    ttlMs: 60_000,
    negativeTtlMs: 60_000,
    connection: {
      forReading: (key) => ({
        ...connection.forReading(key),
        async read(...question) {
          const reply = await connection.forReading(key).read(...question);
          if (reply.status === 'WAIT') waits += 1;
          if (reply.status === 'HIT') {
            hit.resolve();
            await handOver.promise;
          }
          return reply;
        },
      }),
    },
  });

  /** One reader fills with `version`; another, whose cache is slow, waits for it. */
  async function fillWhileAnotherWaits(version: number): Promise<{ waiting: Promise<CacheRead> }> {
    const loaded = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const filling = cache.read('webform', 12, 'full', async () => {
      begun.resolve();
      await loaded.promise;
      return recordOf(version);
    });
    await begun.promise;
    const before = waits;
    const waiting = slow.read('webform', 12, 'full', loadNothing);
    await until('the reader to wait', () => waits > before);
    loaded.resolve();
    await filling;
    return { waiting };
  }

  const { waiting: early } = await fillWhileAnotherWaits(1);
  await hit.promise;
  await cache.clearModel('webform', 12);
  const { waiting: late } = await fillWhileAnotherWaits(2);
  handOver.resolve();
  expect((await early).record?.version).toBe(1);
  expect((await late).record?.version).toBe(2);
  await connection.close();
});

test('who has waited in vain reads the database and does not fill', async () => {
  const stuck = Promise.withResolvers<null>();
  const holder = cache.read('webform', 12, 'full', () => stuck.promise);
  await until('the lease', async () => (await redis.admin.exists('webform:12')) === 1);

  expect(await cache.read('webform', 12, 'full', loadVersion(1))).toEqual({
    outcome: 'miss',
    record: recordOf(1),
  });
  expect(Object.keys(await fieldsOf('webform:12')).toSorted()).toEqual(['full:lease', 'full:lease_end']);
  stuck.resolve(null);
  await holder;
});

test('a slow fill: of those whose patience ends two at a time read the database, and the others get the fill', async () => {
  const filled = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const holder = cache.read('webform', 12, 'full', async () => {
    begun.resolve();
    await filled.promise;
    return recordOf(1);
  });
  await begun.promise;
  let loads = 0;
  const turn = Promise.withResolvers<void>();
  const reads = Array.from({ length: 100 }, () =>
    cache.read('webform', 12, 'full', async () => {
      loads += 1;
      await turn.promise;
      return recordOf(1);
    }),
  );
  await until('the first turns', () => loads === 2);
  // Long after the patience of all of them has ended.
  await sleep(300);
  expect(loads).toBe(2);
  filled.resolve();
  await holder;
  turn.resolve();
  const outcomes = (await Promise.all(reads)).map(({ outcome }) => outcome);
  expect(outcomes.filter((outcome) => outcome === 'hit')).toHaveLength(98);
  expect(loads).toBe(2);
});

test('a lease whose holder is slow: a turn that is over goes to the next reader', async () => {
  const stuck = Promise.withResolvers<null>();
  const holder = cache.read('webform', 12, 'full', () => stuck.promise);
  await until('the lease', async () => (await redis.admin.exists('webform:12')) === 1);
  const load = loadVersion(1, 20);
  await Promise.all(Array.from({ length: 6 }, () => cache.read('webform', 12, 'full', load)));
  expect(load.calls).toBe(6);
  // They were done long before the lease ended.
  expect(Number((await fieldsOf('webform:12'))['full:lease_end'])).toBeGreaterThan(Date.now());
  stuck.resolve(null);
  await holder;
});

test('who gets no turn reads the database all the same when a lease has ended since', async () => {
  const stuck = Promise.withResolvers<null>();
  const holder = cache.read('webform', 12, 'full', () => stuck.promise);
  await until('the lease', async () => (await redis.admin.exists('webform:12')) === 1);
  // As if there were always another holder.
  await redis.admin.hset('webform:12', 'full:lease_end', Date.now() + 3_600_000);
  await redis.admin.persist('webform:12');
  let turns = 0;
  const stuckInTurn = [1, 2].map(() =>
    cache.read('webform', 12, 'full', () => {
      turns += 1;
      return stuck.promise;
    }),
  );
  await until('both have their turns', () => turns === 2);
  expect(await cache.read('webform', 12, 'full', loadVersion(1))).toMatchObject({ outcome: 'miss' });
  stuck.resolve(null);
  await Promise.all([holder, ...stuckInTurn]);
});

test('who waits while Redis begins to refuse passes it by', async () => {
  const stuck = Promise.withResolvers<null>();
  const holder = cache.read('webform', 12, 'full', () => stuck.promise);
  await until('the lease', async () => (await redis.admin.exists('webform:12')) === 1);
  const waiting = cache.read('webform', 12, 'full', loadVersion(1));
  await redis.admin.config('SET', 'min-replicas-to-write', '1');
  try {
    expect(await waiting).toMatchObject({ outcome: 'bypass', record: { version: 1 } });
  } finally {
    await redis.admin.config('SET', 'min-replicas-to-write', '0');
  }
  stuck.resolve(null);
  await holder;
});

test('of those who wait one fills when the lease is gone', async () => {
  const stuck = Promise.withResolvers<null>();
  const holder = cache.read('webform', 12, 'full', () => stuck.promise);
  await until('the lease', async () => (await redis.admin.exists('webform:12')) === 1);
  const load = loadVersion(2, 20);
  const waiting = Array.from({ length: 10 }, () => cache.read('webform', 12, 'full', load));
  await cache.clearModel('webform', 12);
  const reads = await Promise.all(waiting);
  expect(load.calls).toBe(1);
  expect(reads.filter(({ outcome }) => outcome === 'hit')).toHaveLength(9);
  stuck.resolve(null);
  await holder;
});

// 131,072 times é and the quotes: less than the limit in characters, two over it in bytes.
const large = { version: 1, payload: `"${'é'.repeat(131_072)}"` };
const largest = { version: 1, payload: `"${'é'.repeat(131_071)}"` };

test('256 KB are cached, and more are not', async () => {
  await cache.read('webform', 12, 'full', async () => largest);
  expect(await cache.read('webform', 12, 'full', loadNothing)).toEqual({ outcome: 'hit', record: largest });

  const load = async () => large;
  for (let reads = 0; reads < 3; reads += 1)
    expect(await cache.read('webform', 13, 'full', load)).toEqual({ outcome: 'miss', record: large });
  expect(await redis.admin.memory('USAGE', 'webform:13')).toBeLessThan(2_000);
  expect(Object.keys(await fieldsOf('webform:13'))).not.toContain('full:lease');
});

test('readers of a record that is too large wait for nobody', async () => {
  await cache.read('webform', 12, 'full', async () => large);
  const together = Promise.withResolvers<void>();
  let loads = 0;
  const load = async () => {
    loads += 1;
    if (loads === 20) together.resolve();
    await together.promise;
    return large;
  };
  // Each of them comes to the end only when all have begun.
  await Promise.all(Array.from({ length: 20 }, () => cache.read('webform', 12, 'full', load)));
});

test('a record that was too large is cached when a change has made it smaller', async () => {
  await cache.read('webform', 12, 'full', async () => large);
  await cache.clearModel('webform', 12);
  await cache.read('webform', 12, 'full', loadVersion(2));
  expect(await cache.read('webform', 12, 'full', loadNothing)).toMatchObject({ outcome: 'hit' });
});

test("the database's failure is the reader's, and is not cached", async () => {
  const failing = cache.read('webform', 12, 'full', () => Promise.reject(new Error('no database')));
  await expect(failing).rejects.toThrow('no database');
  expect(await cache.read('webform', 12, 'full', loadVersion(1))).toMatchObject({ outcome: 'miss' });
});

test('a refusing Redis is passed by, and the reason is told', async () => {
  await cache.read('webform', 12, 'full', loadVersion(1));
  await redis.admin.config('SET', 'min-replicas-to-write', '1');
  try {
    const read = await cache.read('webform', 12, 'full', loadVersion(2));
    expect(read).toMatchObject({
      outcome: 'bypass',
      record: { version: 2 },
      reason: { name: 'CacheRefused' },
    });
    await expect(cache.clearModel('webform', 12)).rejects.toMatchObject({ name: 'CacheRefused' });
    expect(cache.state).toBe('usable');
  } finally {
    await redis.admin.config('SET', 'min-replicas-to-write', '0');
  }
  expect(await cache.read('webform', 12, 'full', loadNothing)).toMatchObject({ outcome: 'hit' });
});
