import { Counter } from 'prom-client';
import { failedJobClasses, invalidationSources, models } from '@content-platform/contract';
import { withTimeout, type Metrics } from '@content-platform/chassis';
import type { MemoryUsage } from './cache/index.ts';

/** In seconds: from the delay of a healthy platform to an outage that lasts a weekend. */
const delayBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600, 86_400];

export type CacheMetrics = ReturnType<typeof createCacheMetrics>;

export function createCacheMetrics({ counter, durations, gauge }: Metrics) {
  const reads = counter(
    'cache_reads_total',
    'Reads of content records; bypass: Redis could not be used',
    'model',
    'outcome',
  );
  const keysDeleted = counter('cache_keys_deleted_total', 'Keys that clears deleted', 'source');
  const failedJobs = counter('failed_jobs_total', 'Events that could not be processed', 'class');
  const missed = counter(
    'invalidation_missed_total',
    'Changed records that were still in the cache, and were not announced in the minute after their clear',
    'model',
  );
  const delay = durations(
    'invalidation_delay_seconds',
    'From the change (or the call) to the end of the clear',
    delayBuckets,
    'source',
  );
  const queueMeasured = gauge(
    'invalidation_queue_measured_timestamp_seconds',
    'Unix time of the last measurement of the queue, or of the first attempt; 0 without Kafka',
  );
  for (const model of models) {
    missed.inc({ model }, 0);
    for (const outcome of ['hit', 'miss', 'bypass']) reads.inc({ model, outcome }, 0);
  }
  for (const source of invalidationSources) {
    keysDeleted.inc({ source }, 0);
    delay.zero({ source });
  }
  for (const name of failedJobClasses) failedJobs.inc({ class: name }, 0);
  return { reads, keysDeleted, delay, queueMeasured, failedJobs, missed };
}

/** Limit for reading Redis or PostgreSQL in a scrape. */
const scrapeMs = 1_000;

interface Observed {
  memory(): Promise<MemoryUsage>;
  openJobs(): Promise<number>;
  /** Uncommitted events at the last measurement; 0 without Kafka. */
  waitingEvents(): number;
  /** Refused clears that wait in PostgreSQL. */
  pendingClears(): Promise<number>;
}

/** Resolves with undefined if `work` fails or takes longer than `scrapeMs`. */
const inTime = <T>(work: Promise<T>): Promise<T | undefined> =>
  withTimeout<T, undefined>(work, scrapeMs).catch(() => undefined);

/** Registers metrics that are read at each scrape. A metric that cannot be read in time keeps its last value. */
export function measureAtScrape({ measured, registry }: Metrics, observed: Observed): void {
  const { memory, openJobs, waitingEvents, pendingClears } = observed;
  const inRedis = async (field: keyof MemoryUsage) => (await inTime(memory()))?.[field];
  measured('cache_memory_bytes', 'Memory that Redis uses', () => inRedis('usedBytes'));
  measured('cache_memory_limit_bytes', 'Memory that Redis may use; 0: no limit', () => inRedis('limitBytes'));
  measured('failed_jobs_open', 'Failed jobs that were neither retried nor deleted', () => inTime(openJobs()));

  // The last known number, so that the queue length still shows the events in Kafka while PostgreSQL is unavailable.
  let clears = 0;
  const countClears = async () => (clears = (await inTime(pendingClears())) ?? clears);
  measured(
    'invalidation_pending_clears',
    'Clears that Redis refused and that wait to be carried out; every process counts all: aggregate with max',
    countClears,
  );
  measured(
    'invalidation_queue_length',
    'Events in Kafka that are not cleared yet (the last known number while Kafka is unavailable) and pending clears; every process counts all: aggregate with max',
    async () => (await countClears()) + waitingEvents(),
  );

  // Adds up increases: the count of Redis starts again with each start, and differs after a failover.
  let before: number | undefined;
  const evictions: Counter = new Counter({
    name: 'cache_evictions_total',
    help: 'Keys that Redis evicted since the first scrape of this process; every process counts all: aggregate with max',
    registers: [registry],
    async collect() {
      const now = await inRedis('evictedKeys');
      if (now === undefined) return;
      if (before !== undefined && now > before) evictions.inc(now - before);
      before = now;
    },
  });
}
