import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';

import type { ContentCache } from './index.ts';
import { startCache } from './testing/caches.ts';
import { loadNothing, loadVersion, recordOf } from './testing/loaders.ts';
import { startRedis, type RedisServer } from './testing/redis-server.ts';
import { waitFor } from './testing/wait-for.ts';

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
  await waitFor('the entry to expire', async () => {
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
  const load = loadVersion(1, 50);
  const reads = await Promise.all(
    Array.from({ length: 1000 }, () => cache.read('webform', 12, 'full', load)),
  );
  expect(load.calls).toBe(1);
  expect(reads.filter(({ outcome }) => outcome === 'miss')).toHaveLength(1);
  expect(reads.every(({ record }) => record?.version === 1)).toBe(true);
});

test('who has waited in vain reads the database and does not fill', async () => {
  const stuck = Promise.withResolvers<null>();
  const holder = cache.read('webform', 12, 'full', () => stuck.promise);
  await waitFor('the lease', async () => (await redis.admin.exists('webform:12')) === 1);

  expect(await cache.read('webform', 12, 'full', loadVersion(1))).toEqual({
    outcome: 'miss',
    record: recordOf(1),
  });
  expect(Object.keys(await fieldsOf('webform:12')).toSorted()).toEqual(['full:lease', 'full:lease_end']);
  stuck.resolve(null);
  await holder;
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
