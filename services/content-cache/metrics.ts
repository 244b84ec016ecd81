import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, Gauge } from 'prom-client';
import { failedJobClasses, models } from '@content-platform/contract';
import { durations, type Metrics } from '@content-platform/chassis';

const outcomes = ['hit', 'miss', 'bypass'] as const;

/**
 * Who asked for a clear: a call, an event, a failed job tried again, a clear that was refused before, or the service
 * itself because events may have been lost, or because it saw an old record in the cache.
 */
export const sources = ['http', 'kafka', 'retry', 'pending', 'recovery', 'watch'] as const;
export type Source = (typeof sources)[number];

/** From a healthy pipeline's milliseconds to a weekend without Redis. In seconds. */
const delayBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600, 86_400];

export type CacheMetrics = ReturnType<typeof createCacheMetrics>;

/** The signals of this service. */
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
  const queueLength = new Gauge({
    name: 'invalidation_queue_length',
    help: "Events that are not cleared yet, by the broker's offsets; the last known number while Kafka is away",
    registers,
  });
  const queueMeasured = new Gauge({
    name: 'invalidation_queue_measured_timestamp_seconds',
    help: 'When invalidation_queue_length was last measured, or began to be; 0 without Kafka',
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
  return { reads, keysDeleted, delay, queueLength, queueMeasured, failedJobs, missed };
}

/** A scrape waits so long at most for Redis or PostgreSQL. */
const scrapeMs = 1_000;

export interface Observed {
  /** Bytes in use, and the limit (0: none). */
  memory(): Promise<{ usedBytes: number; limitBytes: number }>;
  openJobs(): Promise<number>;
}

/** Gauges that are asked for when they are scraped; without an answer in time they keep their last value. */
export function observe({ registry }: Metrics, { memory, openJobs }: Observed): void {
  function asked(name: string, help: string, ask: () => Promise<number>): void {
    const gauge = new Gauge({ name, help, registers: [registry], collect });
    async function collect(): Promise<void> {
      const answer = ask().then(
        (value) => gauge.set(value),
        () => undefined,
      );
      await Promise.race([answer, sleep(scrapeMs, undefined, { ref: false })]);
    }
  }
  asked('cache_memory_bytes', 'Memory that Redis uses', async () => (await memory()).usedBytes);
  asked(
    'cache_memory_limit_bytes',
    'Memory that Redis may use; 0: no limit',
    async () => (await memory()).limitBytes,
  );
  asked('failed_jobs_open', 'Failed jobs that wait to be tried again or forgotten', openJobs);
}
