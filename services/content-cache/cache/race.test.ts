import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';

import type { ContentCache } from './index.ts';
import type { ProtocolScripts } from './scripts.ts';
import { brokenScripts, cacheAside, joiningLoads, withMemoryInFront } from './testing/broken-versions.ts';
import { startCache } from './testing/caches.ts';
import { disturb, type Disturbance } from './testing/disturbances.ts';
import { raceAndTell, type RaceCache, type RaceFigures, type RaceOptions } from './testing/race.ts';
import { createRandom } from './testing/random.ts';
import { startRedis, type RedisServer } from '../../../test/support/redis-server.ts';

const PROCESSES = 4;
// A longer proof: RACE_READS=10000000, and RACE_SEED to repeat one.
const READS = Number(process.env['RACE_READS'] ?? 100_000);
const HUNG_MS = 120_000 + READS * 2;

const seed = Number(process.env['RACE_SEED'] ?? Math.floor(Math.random() * 1e9));
let redis: RedisServer;
let open: Array<() => Promise<unknown> | unknown> = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
afterEach(async () => {
  await Promise.all(open.map((close) => close()));
  open = [];
  await redis.admin.flushall();
});

async function startCaches(scripts?: ProtocolScripts): Promise<ContentCache[]> {
  const options = scripts ? { scripts } : {};
  const caches = await Promise.all(Array.from({ length: PROCESSES }, () => startCache(redis.url, options)));
  open.push(...caches.map((cache) => cache.close));
  return caches;
}

async function race(
  caches: RaceCache[],
  done: (figures: RaceFigures) => boolean,
  further: Partial<RaceOptions> = { foreign: redis.admin },
): Promise<RaceFigures> {
  return raceAndTell('race', { seed, caches, readers: 48, writers: 4, done, limitMs: HUNG_MS, ...further });
}

/** The race while Redis is disturbed; it ends when the disturbances are over, or with the first stale read. */
async function disturbedRace(caches: RaceCache[], kinds: Disturbance[]): Promise<RaceFigures> {
  const over = new AbortController();
  const disturbing = disturb(redis, kinds, createRandom(seed), { over: over.signal }).finally(() =>
    over.abort(),
  );
  const figures = await race(caches, ({ stale }) => over.signal.aborted || stale > 0, {});
  over.abort();
  await disturbing;
  return figures;
}

test(
  `no read is stale in ${READS} (RACE_SEED=${seed})`,
  async () => {
    const figures = await race(await startCaches(), ({ reads }) => reads >= READS);
    expect(figures).toMatchObject({ stale: 0, mistaken: 0, unmanagedLeft: 0 });
    // A race in which nobody met would prove nothing.
    expect(figures.readsDuringClear).toBeGreaterThan(READS / 100);
    expect(figures.hits).toBeGreaterThan(READS / 4);
    expect(figures.patternClears).toBeGreaterThan(0);
    expect(figures.unmanagedKeys).toBeGreaterThan(0);
  },
  HUNG_MS,
);

test(
  'no read is stale while Redis hangs, crashes, comes back with old data, evicts and forgets',
  async () => {
    const kinds: Disturbance[] = ['hang', 'crash', 'forgetScripts', 'evict', 'dropConnections', 'crash'];
    const figures = await disturbedRace(await startCaches(), kinds);
    expect(figures).toMatchObject({ stale: 0, mistaken: 0 });
    expect(Math.min(figures.hits, figures.bypasses, figures.refusedClears, figures.clears)).toBeGreaterThan(
      0,
    );
  },
  HUNG_MS,
);

test(
  'the disturbed race catches a protocol without the incarnation',
  async () => {
    const caches = await startCaches(brokenScripts.withoutIncarnation);
    // It ends with the first stale read; a crash that undoes no clear shows nothing.
    const kinds = Array.from({ length: 8 }, (): Disturbance => 'crash');
    expect((await disturbedRace(caches, kinds)).stale).toBeGreaterThan(0);
  },
  HUNG_MS,
);

const broken: Record<string, () => Promise<RaceCache[]>> = {
  'FILL without the lease check': () => startCaches(brokenScripts.fillWithoutLeaseCheck),
  'CLEAR that leaves the lease': () => startCaches(brokenScripts.clearThatLeavesTheLease),
  'a memory cache in front': async () => (await startCaches()).map(withMemoryInFront),
  'joining a database read begun before the clear': async () => (await startCaches()).map(joiningLoads),
  'plain cache-aside': async () =>
    Array.from({ length: PROCESSES }, () => {
      const client = new Redis(redis.url);
      open.push(() => client.quit());
      return cacheAside(client);
    }),
};

test.each(Object.entries(broken))(
  'the race catches %s',
  async (_, start) => {
    // The first stale read ends it. How soon it comes is a matter of chance, and mostly it comes at once.
    const figures = await race(await start(), ({ stale, reads }) => stale > 0 || reads >= 10 * READS);
    expect(figures.stale).toBeGreaterThan(0);
  },
  HUNG_MS,
);
