import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createLogger, createMetrics } from '@content-platform/chassis';
import { CacheUnavailable, type CacheClearer, type ContentCache } from './cache/index.ts';
import { startCache } from './cache/testing/caches.ts';
import { createInvalidationLog } from './invalidation-log.ts';
import { createInvalidator } from './invalidator.ts';
import { createCacheMetrics } from './metrics.ts';
import { createPendingClears, type PendingClears } from './pending-clears.ts';
import { startWorld, type World } from './testing/world.ts';

let world: World;
let cache: ContentCache;
let pending: PendingClears;
beforeAll(async () => {
  world = await startWorld();
  // Only to migrate: the test itself carries out the clears.
  await (await world.service()).stop();
  cache = await startCache(world.redis.url);
  const logger = createLogger('content-cache', 'silent');
  const metrics = createMetrics('content-cache');
  const log = createInvalidationLog(world.query, logger);
  pending = createPendingClears(world.query, createInvalidator(log, createCacheMetrics(metrics)), logger);
});
afterAll(async () => {
  await cache.close();
  await world.close();
});

const target = { model: 'webform', id: 1 } as const;
const requester = { source: 'http', requestedBy: 'cms' } as const;
const count = async () => (await world.sql('SELECT FROM content.pending_clear')).length;

test('carries out a request that arrives during the clear of its target', async () => {
  await pending.add(target, requester);
  let clears = 0;
  const clearer: CacheClearer = {
    ...cache,
    async clearModel(model, id) {
      clears += 1;
      if (clears === 1) await pending.add(target, requester);
      return cache.clearModel(model, id);
    },
  };
  await pending.carryOut(clearer);
  expect(clears).toBe(2);
  expect(await count()).toBe(0);
});

test('keeps a clear that is refused again, and removes the others', async () => {
  for (const id of [1, 2, 3]) await pending.add({ model: 'webform', id }, requester);
  const clearer: CacheClearer = {
    ...cache,
    clearModel: (model, id) =>
      id === 2 ? Promise.reject(new CacheUnavailable('away')) : cache.clearModel(model, id),
  };
  await expect(pending.carryOut(clearer)).rejects.toThrow('away');
  expect(await world.sql('SELECT record_id FROM content.pending_clear')).toEqual([{ record_id: '2' }]);
});

test('finds the records that stored clears cover, by id and by model', async () => {
  await world.sql('TRUNCATE content.pending_clear');
  await pending.add({ model: 'pathway', id: 1 }, requester);
  await pending.add({ model: 'condition', id: null }, requester);
  const records = (['webform', 'pathway', 'condition'] as const).flatMap((model) =>
    [1, 2].map((id) => ({ model, id })),
  );
  expect(await pending.among(records)).toEqual(new Set(['pathway:1', 'condition:1', 'condition:2']));
});
