import { minRequests, models, pathsWithOwnLimit, targetGoals, type Target } from '@content-platform/contract';
import { bucketsOf, countOf, p95, type Counts } from './counters.ts';
import type { Gauges } from './sampler.ts';

/** Time before a sample over which requests and reads are counted. */
export const countWindowMs = 300_000;
const notJudged = new Set(pathsWithOwnLimit);

/** With fewer reads most of them are first reads, which miss. */
const minReads = 100;
/** An older measurement of the queue counts as unknown. */
const queueKnownMs = 60_000;

function responseTime(counted: Counts, { gateway }: Gauges): Target {
  const buckets = bucketsOf(counted, (route) => !notJudged.has(route.split(' ')[1]!));
  const value = countOf(buckets) < minRequests ? null : p95(buckets);
  const ok = gateway && (value === null || value < targetGoals.response_time_p95.goal);
  return { name: 'response_time_p95', value, ...targetGoals.response_time_p95, ok };
}

function queue({ queue: length, queueMeasuredAt }: Gauges, at: number): Target {
  const isWithoutKafka = queueMeasuredAt === 0;
  const isKnown = isWithoutKafka || (queueMeasuredAt ?? 0) > at - queueKnownMs;
  const value = isKnown ? (length ?? null) : null;
  const ok = value !== null && value < targetGoals.invalidation_queue.goal;
  const note = isWithoutKafka && { note: 'HTTP only: pending clears, as Kafka is not configured' };
  return { name: 'invalidation_queue', value, ...targetGoals.invalidation_queue, ok, ...note };
}

function failedJobs({ failedJobs: open }: Gauges): Target {
  const ok = open === targetGoals.failed_jobs.goal;
  return { name: 'failed_jobs', value: open ?? null, ...targetGoals.failed_jobs, ok };
}

/** Counts reads of content by the cache's outcome. */
export function readsOf(counted: Counts, some: readonly string[] = models) {
  const of = (outcome: string) =>
    some.reduce((sum, model) => sum + (counted.get(`read|${model}|${outcome}`) ?? 0), 0);
  const [hits, misses, bypasses] = [of('hit'), of('miss'), of('bypass')];
  const all = hits + misses + bypasses;
  return { hits, misses, bypasses, all, ratio: all > 0 ? hits / all : null };
}

function hitRatio(counted: Counts, { contentCache }: Gauges): Target {
  const { all, ratio } = readsOf(counted);
  const value = all < minReads ? null : ratio;
  const ok = contentCache && (value === null || value > targetGoals.hit_ratio.goal);
  return { name: 'hit_ratio', value, ...targetGoals.hit_ratio, ok };
}

function cacheMemory({ memoryBytes, memoryLimitBytes = 0 }: Gauges): Target {
  const target = { name: 'cache_memory', ...targetGoals.cache_memory } as const;
  if (memoryBytes === undefined) return { ...target, value: null, ok: false };
  if (memoryLimitBytes === 0) return { ...target, value: memoryBytes, goal: null, unit: 'bytes', ok: true };
  const value = memoryBytes / memoryLimitBytes;
  return { ...target, value, ok: value < target.goal };
}

/**
 * Evaluates the targets with the alerts' thresholds: counts of the last 5 minutes, and the gauges at `at` (ms). Too little
 * data is null and ok; a value that no process reports is null and not ok.
 */
export const measure = (counted: Counts, gauges: Gauges, at: number): Target[] => [
  responseTime(counted, gauges),
  queue(gauges, at),
  failedJobs(gauges),
  hitRatio(counted, gauges),
  cacheMemory(gauges),
];
