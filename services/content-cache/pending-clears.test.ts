import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createLogger, createMetrics } from '@content-platform/chassis';
import { CacheUnavailable, type Clearing, type ContentCache } from './cache/index.ts';
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
  // Migrates, and goes: what is tested here is carried out by the test alone.
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

test('a request that comes while the same target is carried out is carried out after it', async () => {
  await pending.add(target, requester);
  let clears = 0;
  const clearing: Clearing = {
    ...cache,
    async clearModel(model, id) {
      clears += 1;
      if (clears === 1) await pending.add(target, requester);
      return cache.clearModel(model, id);
    },
  };
  await pending.carryOut(clearing);
  expect(clears).toBe(2);
  expect(await count()).toBe(0);
});

test('what is refused again stays, the others go', async () => {
  for (const id of [1, 2, 3]) await pending.add({ model: 'webform', id }, requester);
  const clearing: Clearing = {
    ...cache,
    clearModel: (model, id) =>
      id === 2 ? Promise.reject(new CacheUnavailable('away')) : cache.clearModel(model, id),
  };
  await expect(pending.carryOut(clearing)).rejects.toThrow('away');
  expect(await world.sql('SELECT record_id FROM content.pending_clear')).toEqual([{ record_id: '2' }]);
});
