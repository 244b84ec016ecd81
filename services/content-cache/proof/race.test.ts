import { afterAll, expect, test } from '@jest/globals';
import type { ProtocolScripts } from '../cache/connection.ts';
import { brokenScripts } from '../cache/testing/broken-versions.ts';
import { createRandom } from '../cache/testing/random.ts';
import { models, records, scenarios, type Scenario, type Stage } from '../cache/testing/scenarios.ts';
import type { RaceFigures } from '../cache/testing/race.ts';
import { startThreads } from '../cache/testing/threads.ts';
import { proofSize } from '../../../test/support/proof-size.ts';
import { writeResult } from '../../../test/support/results.ts';

/**
 * The number of reads that overlap an unanswered clear of their record, under constant faults of Redis. RACE_SEED
 * repeats a race.
 */
const READS = Number(process.env['RACE_READS'] ?? proofSize(10_000_000, 20_000));
const seed = Number(process.env['RACE_SEED'] ?? Math.floor(Math.random() * 1e9));
const settings = { models, records, threads: 2, readersPerThread: 300, writersPerThread: 6 };

const REPORT_MS = 30_000;
/** A broken protocol is caught sooner, mostly at once. */
const BROKEN_READS = proofSize(100_000, 10_000);
/** A race below 250 reads a second counts as hanging. */
const limitFor = (reads: number) => 300_000 + reads * 4;
/** Low enough to notice a leak of 30 bytes a read. */
const HEAP_GROWTH_MB = 150;

interface Seen {
  figures: RaceFigures;
  seconds: number;
  /** the number of each fault */
  troubles: Record<string, number>;
  /** the lowest heap size of each minute, all threads together, in MB */
  heapLows: number[];
  redisVersion: string;
}
const racedOf = ({ hitsDuringClear, missesDuringClear }: RaceFigures) => hitsDuringClear + missesDuringClear;

interface Broken {
  scripts?: ProtocolScripts;
  uncounted?: boolean;
}

/** Races until `reads` reads overlapped a clear, or until a stale read. */
async function race(scenario: Scenario, reads: number, { scripts, uncounted }: Broken = {}): Promise<Seen> {
  const stage = await scenario.start(uncounted);
  try {
    return await raceOn(stage, scenario.name, reads, scripts);
  } finally {
    await stage.stop();
  }
}

async function raceOn(stage: Stage, name: string, reads: number, scripts?: ProtocolScripts): Promise<Seen> {
  const redisVersion = /redis_version:(\S+)/.exec(await stage.admin.info('server'))![1]!;
  const began = performance.now();
  const over = new AbortController();
  const running = startThreads(settings.threads, {
    seed,
    models,
    records,
    readers: settings.readersPerThread,
    writers: settings.writersPerThread,
    caches: stage.caches.map((cache) => (scripts ? { ...cache, scripts } : cache)),
    limitMs: limitFor(reads),
    ...(stage.foreignUrl === undefined ? {} : { foreignUrl: stage.foreignUrl }),
  });
  let haveFaultsEnded = false;
  const troubling = stage.trouble(createRandom(seed), over.signal).finally(() => (haveFaultsEnded = true));
  troubling.catch(() => undefined);
  const heapLows: number[] = [];
  let reportedAt = began;
  function record(figures: RaceFigures): boolean {
    const raced = racedOf(figures);
    const minute = Math.floor((performance.now() - began) / 60_000);
    const heap = Math.round(running.heaps().reduce((sum, bytes) => sum + bytes, 0) / 2 ** 20);
    // 0: no thread has reported yet.
    if (heap > 0) heapLows[minute] = Math.min(heapLows[minute] ?? Infinity, heap);
    if (performance.now() - reportedAt > REPORT_MS) {
      reportedAt = performance.now();
      const perSecond = Math.round((1_000 * raced) / (reportedAt - began));
      process.stderr.write(
        `${name}: ${raced} of ${reads} raced reads, ${perSecond} a second, ${figures.stale} stale, heap ${heap} MB\n`,
      );
    }
    return raced >= reads || figures.stale > 0;
  }
  try {
    await running.until((figures) => {
      if (record(figures)) over.abort();
      return haveFaultsEnded;
    });
  } finally {
    over.abort();
    await running.stop();
  }
  const [troubles, figures] = [await troubling, running.figures()];
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  process.stderr.write(`${name}: ${JSON.stringify({ seed, seconds, troubles, ...figures })}\n`);
  return { figures, seconds, troubles, heapLows, redisVersion };
}

const results: Record<string, unknown>[] = [];
let raced = 0;

test.each(scenarios)(
  `$name: no read is stale (RACE_SEED=${seed})`,
  async (scenario) => {
    const reads = Math.ceil(READS * scenario.share);
    const { figures, ...seen } = await race(scenario, reads);
    raced += racedOf(figures);
    results.push({ name: scenario.name, does: scenario.does, raced: racedOf(figures), ...seen, figures });

    expect(figures).toMatchObject({ stale: 0, mistaken: 0, unmanagedLeft: 0 });
    // Bypassing reads do not count; hits and misses both occur.
    expect(racedOf(figures)).toBeGreaterThanOrEqual(reads);
    expect(figures.hitsDuringClear).toBeGreaterThan(reads / 4);
    expect(figures.missesDuringClear).toBeGreaterThan(reads / 50);
    const { clears, patternClears, bypasses, refusedClears } = figures;
    expect(clears).toBeGreaterThan(reads / 1_000);
    expect(patternClears).toBeGreaterThan(0);
    if (scenario.name !== 'undisturbed') expect(Math.min(bypasses, refusedClears)).toBeGreaterThan(0);
    for (const count of Object.values(seen.troubles)) expect(count).toBeGreaterThan(0);
    // The first minute warms up, the last is incomplete.
    const heaps = seen.heapLows.slice(1, -1);
    if (heaps.length > 1) expect(heaps.at(-1)! - heaps[0]!).toBeLessThan(HEAP_GROWTH_MB);
  },
  limitFor(READS),
);

const allBroken: [string, string, Broken][] = [
  ['undisturbed', 'FILL without the lease check', { scripts: brokenScripts.fillWithoutLeaseCheck }],
  ['undisturbed', 'CLEAR that leaves the lease', { scripts: brokenScripts.clearThatLeavesTheLease }],
  ['snapshots', 'a protocol without the incarnation', { scripts: brokenScripts.withoutIncarnation }],
  ['cut file', 'a protocol without the incarnation', { scripts: brokenScripts.withoutIncarnation }],
  ['failover', 'replicas that are not counted', { uncounted: true }],
  ['cluster', 'CLEAR that leaves the lease', { scripts: brokenScripts.clearThatLeavesTheLease }],
];
/** In the quick proof only those without faults: the others take half a minute each. */
const broken = proofSize(allBroken, allBroken.slice(0, 2));

test.each(broken)(
  '%s: the same race catches %s',
  async (name, without, how) => {
    const scenario = scenarios.find((one) => one.name === name)!;
    const { figures } = await race(scenario, BROKEN_READS, how);
    const { reads, stale, firstStale } = figures;
    results.push({ name, broken: without, reads, stale, firstStale });
    expect(stale).toBeGreaterThan(0);
  },
  limitFor(BROKEN_READS),
);

afterAll(() => {
  const about =
    'raced: reads that hit or missed while a clear of the same record was sent and not yet answered; stale: reads that began after a clear was acknowledged and returned less than was committed when it was sent';
  writeResult('faults', 'race', { about, seed, settings, raced, results });
});
