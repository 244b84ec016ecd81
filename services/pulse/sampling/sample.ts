import type { Target } from '@content-platform/contract';
import { gauge, sum, type Counts } from './counters.ts';
import type { Scrape } from './scrape.ts';

/** The result of one round of scraping all processes. */
export interface Sample {
  /** ms */
  at: number;
  /** Increases of the counters since the previous sample. */
  increases: Counts;
  gauges: Gauges;
  /** Values of the targets. */
  values: ReadonlyMap<Target['name'], number | null>;
}

/** The gauges of all processes; absent: no process reported the value. */
export interface Gauges {
  /** Whether a gateway answered; only gateways count requests. */
  gateway: boolean;
  /** Whether a content-cache answered; only content-cache counts reads. */
  contentCache: boolean;
  queue?: number | undefined;
  /** When the queue length was last read from Kafka, in ms; 0: Kafka is not configured. */
  queueMeasuredAt?: number | undefined;
  failedJobs?: number | undefined;
  memoryBytes?: number | undefined;
  /** 0: no limit. */
  memoryLimitBytes?: number | undefined;
}

function largest(scrapes: readonly Scrape[], name: string): number | undefined {
  const values = scrapes.map((scrape) => gauge(scrape, name)).filter((value) => value !== undefined);
  return values.length > 0 ? Math.max(...values) : undefined;
}

export function gaugesOf(scrapes: readonly Scrape[]): Gauges {
  const measured = largest(scrapes, 'invalidation_queue_measured_timestamp_seconds');
  return {
    gateway: scrapes.some((scrape) => scrape.has('gateway_upstream_errors_total')),
    contentCache: scrapes.some((scrape) => scrape.has('cache_reads_total')),
    queue: largest(scrapes, 'invalidation_queue_length'),
    queueMeasuredAt: measured === undefined ? undefined : measured * 1_000,
    failedJobs: largest(scrapes, 'failed_jobs_open'),
    memoryBytes: largest(scrapes, 'cache_memory_bytes'),
    memoryLimitBytes: largest(scrapes, 'cache_memory_limit_bytes'),
  };
}

/** Sums the increases in the `ms` before `at`. */
export function countedSince(samples: readonly Sample[], at: number, ms: number): Counts {
  return sum(samples.filter((sample) => sample.at > at - ms).map(({ increases }) => increases));
}
