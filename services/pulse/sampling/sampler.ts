import { setTimeout as sleep } from 'node:timers/promises';
import type { Target } from '@content-platform/contract';
import { largestValue, sum, type Counts } from './counters.ts';
import { processesAt, scrape, type Scrape } from './scrape.ts';
import { countWindowMs, measure } from './targets.ts';
import { watchAddresses, type WatchedProcess } from './watched-process.ts';

const intervalMs = 5_000;
/** The samples of an hour. */
const maxSamples = 720;

/** The result of one round of scraping all processes. */
export interface Sample {
  /** When the round ended, in ms. */
  at: number;
  /** Increases of the counters since the previous sample. */
  increases: Counts;
  gauges: Gauges;
  /** Values of the targets. */
  values: ReadonlyMap<Target['name'], number | null>;
}

export type Gauges = ReturnType<typeof gaugesOf>;

/** Returns the gauges of all processes; undefined: no process reported the value. */
export function gaugesOf(scrapes: readonly Scrape[]) {
  const largest = (name: string) => largestValue(name, ...scrapes);
  const timeOfQueue = 'invalidation_queue_measured_timestamp_seconds';
  const measured = largest(timeOfQueue);
  // A process that has lost its connection to Kafka keeps its last number.
  const measuring = scrapes.filter((one) => (largestValue(timeOfQueue, one) ?? 0) >= (measured ?? 0) - 60);
  return {
    /** Whether a gateway responded; only gateways count requests. */
    gateway: scrapes.some((scrape) => scrape.has('gateway_upstream_errors_total')),
    /** Whether a content-cache responded; only content-cache counts reads. */
    contentCache: scrapes.some((scrape) => scrape.has('cache_reads_total')),
    queue: largestValue('invalidation_queue_length', ...measuring),
    /** When the queue length was last read from Kafka, in ms; 0: Kafka is not configured. */
    queueMeasuredAt: measured === undefined ? undefined : measured * 1_000,
    failedJobs: largest('failed_jobs_open'),
    memoryBytes: largest('cache_memory_bytes'),
    /** 0: no limit. */
    memoryLimitBytes: largest('cache_memory_limit_bytes'),
  };
}

/** Sums the increases in the `ms` before `at`. */
export function countedSince(samples: readonly Sample[], at: number, ms: number): Counts {
  return sum(samples.filter((one) => one.at > at - ms && one.at <= at).map(({ increases }) => increases));
}

/** Samples all processes every 5 seconds, and keeps the samples of an hour. */
export function startSampler(bases: readonly string[]) {
  const samples: Sample[] = [];
  const watch = watchAddresses();
  let processes: WatchedProcess[] = [];
  const closing = new AbortController();

  async function take(): Promise<void> {
    const addresses = [...new Set((await Promise.all(bases.map(processesAt))).flat())];
    const watched = watch(addresses, Date.now());
    const scrapes = await Promise.all(addresses.map(scrape));
    const at = Date.now();
    const increases = sum(watched.map((process, index) => process.take(at, scrapes[index])));
    processes = watched; // Not before: a new process would be shown as down until its reply.
    const gauges = gaugesOf(scrapes.filter((one) => one !== undefined));
    const sample: Sample = { at, increases, gauges, values: new Map() };
    samples.push(sample);
    if (samples.length > maxSamples) samples.shift();
    const targets = measure(countedSince(samples, at, countWindowMs), gauges, at);
    sample.values = new Map(targets.map(({ name, value }) => [name, value]));
  }

  const running = (async () => {
    while (!closing.signal.aborted) {
      const pause = sleep(intervalMs, undefined, { signal: closing.signal }).catch(() => undefined);
      await take();
      await pause;
    }
  })();

  return {
    /** Oldest first. */
    samples: (): readonly Sample[] => samples,
    processes: () => processes.map((process) => process.state()),
    async close(): Promise<void> {
      closing.abort();
      await running;
    },
  };
}
export type Sampler = Pick<ReturnType<typeof startSampler>, 'samples' | 'processes'>;
