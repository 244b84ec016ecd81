import { Counter, Gauge, type Registry } from 'prom-client';
import { failedJobClasses, models } from '@content-platform/contract';
import { durations, withTimeout, type Metrics } from '@content-platform/chassis';

const outcomes = ['hit', 'miss', 'bypass'] as const;

/**
 * The origin of a clear: an HTTP call, an event, a retried failed job, a clear that was refused before, a possible loss of
 * events (recovery), or a stale cache entry (watch).
 */
export const sources = ['http', 'kafka', 'retry', 'pending', 'recovery', 'watch'] as const;
export type Source = (typeof sources)[number];

/** In seconds: from a healthy pipeline to a weekend without Redis. */
const delayBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600, 86_400];

export type CacheMetrics = ReturnType<typeof createCacheMetrics>;

export function createCacheMetrics({ registry }: Metrics) {
  const registers = [registry];
  const reads = new Counter({
    name: 'cache_reads_total',
    help: 'Reads of content records; bypass: Redis could not be used',
    labelNames: ['model', 'outcome'],
    registers,
  });
  const keysDeleted = new Counter({
    name: 'cache_keys_deleted_total',
    help: 'Keys that clears deleted',
    labelNames: ['source'],
    registers,
  });
  const delay = durations(registry, {
    name: 'invalidation_delay_seconds',
    help: 'From the change (or the call) to the end of the clear',
    labelNames: ['source'],
    buckets: delayBuckets,
  });
  const queueMeasured = new Gauge({
    name: 'invalidation_queue_measured_timestamp_seconds',
    help: 'When Kafka last said how many events wait, or was first asked; 0 without Kafka',
    registers,
  });
  const failedJobs = new Counter({
    name: 'failed_jobs_total',
    help: 'Events that could not be processed',
    labelNames: ['class'],
    registers,
  });
  const missed = new Counter({
    name: 'invalidation_missed_total',
    help: 'Changed records that were still in the cache, and no announcement of the change was on its way',
    labelNames: ['model'],
    registers,
  });
  for (const model of models) missed.inc({ model }, 0);
  for (const model of models) for (const outcome of outcomes) reads.inc({ model, outcome }, 0);
  for (const source of sources) {
    keysDeleted.inc({ source }, 0);
    delay.zero({ source });
  }
  for (const name of failedJobClasses) failedJobs.inc({ class: name }, 0);
  return { reads, keysDeleted, delay, queueMeasured, failedJobs, missed };
}

/** How long a scrape waits for Redis or PostgreSQL. */
const scrapeMs = 1_000;

export interface Observed {
  /** In bytes; a limit of 0 means none. `evictedKeys` counts from the start of Redis. */
  memory(): Promise<{ usedBytes: number; limitBytes: number; evictedKeys: number }>;
  openJobs(): Promise<number>;
  /** Uncommitted events at the last measurement; 0 without Kafka. */
  waitingEvents(): number;
  /** Refused clears that wait in PostgreSQL. */
  pendingClears(): Promise<number>;
}

/** Waits for `work`, at most `scrapeMs`, and ignores its errors. */
async function inTime(work: Promise<unknown>): Promise<void> {
  const settled = work.catch(() => undefined);
  await withTimeout(settled, scrapeMs);
}

/** Registers metrics that are read at each scrape. A metric that cannot be read in time keeps its last value. */
export function observe(metrics: Metrics, observed: Observed): void {
  const { memory, openJobs } = observed;
  const registers = [metrics.registry];
  function asked(name: string, help: string, ask: () => Promise<number>): void {
    const collect = () => inTime(ask().then((value) => gauge.set(value)));
    const gauge: Gauge = new Gauge({ name, help, registers, collect });
  }
  asked('cache_memory_bytes', 'Memory that Redis uses', async () => (await memory()).usedBytes);
  asked(
    'cache_memory_limit_bytes',
    'Memory that Redis may use; 0: no limit',
    async () => (await memory()).limitBytes,
  );
  asked('failed_jobs_open', 'Failed jobs that wait to be tried again or forgotten', openJobs);
  observeEvictions(registers, memory);
  observeQueue(registers, observed);
}

/** Adds up increases: the count of Redis starts again with each start, and differs after a failover. */
function observeEvictions(registers: Registry[], memory: Observed['memory']): void {
  let before: number | undefined;
  async function count(): Promise<void> {
    const { evictedKeys } = await memory();
    if (before !== undefined && evictedKeys > before) evictions.inc(evictedKeys - before);
    before = evictedKeys;
  }
  const evictions: Counter = new Counter({
    name: 'cache_evictions_total',
    help: 'Keys that Redis evicted since this process began to look; every process counts all: aggregate with max',
    registers,
    collect: () => inTime(count()),
  });
}

/** Counts pending clears once per scrape for both gauges. */
function observeQueue(registers: Registry[], { waitingEvents, pendingClears }: Observed): void {
  let clears = 0;
  let counting: Promise<void> | undefined;
  const count = () =>
    (counting ??= inTime(pendingClears().then((found) => (clears = found))).finally(() => {
      counting = undefined;
    }));
  const pending: Gauge = new Gauge({
    name: 'invalidation_pending_clears',
    help: 'Clears that Redis refused and that wait to be carried out; every process counts all: aggregate with max',
    registers,
    collect: () => count().then(() => pending.set(clears)),
  });
  const queue: Gauge = new Gauge({
    name: 'invalidation_queue_length',
    help: 'Events in Kafka that are not cleared yet (the last known number while Kafka is away) and pending clears; every process counts all: aggregate with max',
    registers,
    collect: () => count().then(() => queue.set(waitingEvents() + clears)),
  });
}
