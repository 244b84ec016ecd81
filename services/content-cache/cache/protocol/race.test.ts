import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';

import type { ContentCache } from '../index.ts';
import { startCache } from '../testing/caches.ts';
import { disturb, type Disturbance } from '../testing/disturbances.ts';
import { raceAndTell, type RaceFigures } from '../testing/race.ts';
import { createRandom } from '../testing/random.ts';
import { startRedis, type RedisServer } from '../../../../test/support/redis-server.ts';

// RACE_SEED repeats a race. The long race, and proof that it catches broken protocols: npm run proof -- race
const processes = 4;
const reads = Number(process.env['RACE_READS'] ?? 20_000);
const limitMs = 120_000 + reads * 2;
const seed = Number(process.env['RACE_SEED'] ?? Math.floor(Math.random() * 1e9));

let redis: RedisServer;
let caches: ContentCache[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
afterEach(async () => {
  await Promise.all(caches.map((cache) => cache.close()));
  await redis.admin.flushall();
});

async function race(done: (figures: RaceFigures) => boolean, more = {}): Promise<RaceFigures> {
  caches = await Promise.all(Array.from({ length: processes }, () => startCache(redis.url)));
  return raceAndTell('race', { seed, caches, readers: 48, writers: 4, done, limitMs, ...more });
}

test(
  `returns no stale read in ${reads} (RACE_SEED=${seed})`,
  async () => {
    const figures = await race((seen) => seen.reads >= reads, { foreign: redis.admin });
    expect(figures).toMatchObject({ stale: 0, mistaken: 0, unmanagedLeft: 0 });
    // Without overlapping reads and clears the race would prove nothing.
    expect(figures.readsDuringClear).toBeGreaterThan(reads / 100);
    expect(figures.hits).toBeGreaterThan(reads / 4);
    expect(figures.patternClears).toBeGreaterThan(0);
    expect(figures.unmanagedKeys).toBeGreaterThan(0);
  },
  limitMs,
);

test(
  'returns no stale read while Redis hangs, crashes, comes back with old data, evicts and forgets scripts',
  async () => {
    const kinds: Disturbance[] = ['hang', 'crash', 'forgetScripts', 'evict', 'dropConnections', 'crash'];
    const over = new AbortController();
    const disturbing = disturb(redis, kinds, createRandom(seed), { over: over.signal }).finally(() =>
      over.abort(),
    );
    const figures = await race(({ stale }) => over.signal.aborted || stale > 0);
    over.abort();
    await disturbing;
    expect(figures).toMatchObject({ stale: 0, mistaken: 0 });
    const { hits, bypasses, refusedClears, clears } = figures;
    expect(Math.min(hits, bypasses, refusedClears, clears)).toBeGreaterThan(0);
  },
  limitMs,
);
