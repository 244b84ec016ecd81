import { expect, test } from '@jest/globals';
import { closedAfterEach } from '../testing/closed-after-each.ts';
import { runRace } from '../testing/race.ts';
import { startRedis } from '../../../../test/support/redis-server.ts';
import { useStarted } from '../../../../test/support/use-started.ts';

// RACE_SEED repeats a race. The long race, also with faults of Redis, and proof that it catches broken protocols: npm
// run proof -- race
const processes = 4;
const reads = Number(process.env['RACE_READS'] ?? 20_000);
const limitMs = 120_000 + reads * 2;
const seed = Number(process.env['RACE_SEED'] ?? Math.floor(Math.random() * 1e9));

const started = closedAfterEach();
const redis = useStarted(startRedis);

test(
  `returns no stale read in ${reads} (RACE_SEED=${seed})`,
  async () => {
    const caches = await Promise.all(Array.from({ length: processes }, () => started.cache(redis.url)));
    const figures = await runRace({
      seed,
      caches,
      foreign: redis.admin,
      models: ['webform', 'pathway'],
      records: 20,
      readers: 48,
      writers: 4,
      done: (seen) => seen.reads >= reads,
      limitMs,
    });
    expect(figures).toMatchObject({ stale: 0, mistaken: 0, unmanagedLeft: 0 });
    // Without overlapping reads and clears, the race would not test anything.
    expect(figures.readsDuringClear).toBeGreaterThan(reads / 100);
    expect(figures.hits).toBeGreaterThan(reads / 4);
    expect(figures.patternClears).toBeGreaterThan(0);
    expect(figures.unmanagedKeys).toBeGreaterThan(0);
  },
  limitMs,
);
