import type { Target } from '@content-platform/contract';
import type { Counts } from './counters.ts';
import { bucketsOf, countOf, p95 } from './quantile.ts';
import type { Gauges } from './sample.ts';

/** Logins and tokens take long on purpose, and an upload is as long as its file; each path has POST alone. */
const notJudged = new Set(['/api/login', '/pulse/sign-in', '/api/token', '/api/upload']);

/** Of fewer requests the slowest alone would decide, and few reads are mostly first reads. */
const fewestRequests = 20;
const fewestReads = 100;
/** A queue that was measured longer ago is not known. */
const queueKnownMs = 60_000;

function responseTime(counted: Counts, { gateway }: Gauges): Target {
  const buckets = bucketsOf(counted, (route) => !notJudged.has(route.split(' ')[1]!));
  const value = countOf(buckets) < fewestRequests ? null : p95(buckets);
  const ok = gateway && (value === null || value < 0.5);
  return { name: 'response_time_p95', value, goal: 0.5, comparison: 'below', unit: 'seconds', ok };
}

function queue({ queue: length, queueMeasuredAt }: Gauges, at: number): Target {
  // 0: it was never measured, as where there is no Kafka.
  const isKnown = queueMeasuredAt === 0 || (queueMeasuredAt ?? 0) > at - queueKnownMs;
  const value = isKnown ? (length ?? null) : null;
  const ok = value !== null && value < 100;
  return { name: 'invalidation_queue', value, goal: 100, comparison: 'below', unit: 'count', ok };
}

function failedJobs({ failedJobs: open }: Gauges): Target {
  return {
    name: 'failed_jobs',
    value: open ?? null,
    goal: 0,
    comparison: 'equal',
    unit: 'count',
    ok: open === 0,
  };
}

/** Reads of content by what the cache did; of all models, or of one. */
export function readsOf(counted: Counts, model?: string) {
  const of = (outcome: string) => {
    const end = model === undefined ? `|${outcome}` : `|${model}|${outcome}`;
    return [...counted].reduce((sum, [key, n]) => (isRead(key) && key.endsWith(end) ? sum + n : sum), 0);
  };
  const [hits, misses, bypasses] = [of('hit'), of('miss'), of('bypass')];
  const all = hits + misses + bypasses;
  return { hits, misses, bypasses, all, ratio: all > 0 ? hits / all : null };
}
const isRead = (key: string) => key.startsWith('read|');

function hitRatio(counted: Counts, { contentCache }: Gauges): Target {
  const { all, ratio } = readsOf(counted);
  const value = all < fewestReads ? null : ratio;
  const ok = contentCache && (value === null || value > 0.8);
  return { name: 'hit_ratio', value, goal: 0.8, comparison: 'above', unit: 'ratio', ok };
}

function cacheMemory({ memoryBytes, memoryLimitBytes = 0 }: Gauges): Target {
  const of = (value: number | null, goal: number | null, unit: Target['unit'], ok: boolean): Target => ({
    name: 'cache_memory',
    value,
    goal,
    comparison: 'below',
    unit,
    ok,
  });
  if (memoryBytes === undefined) return of(null, 0.9, 'ratio', false);
  if (memoryLimitBytes === 0) return of(memoryBytes, null, 'bytes', true);
  const value = memoryBytes / memoryLimitBytes;
  return of(value, 0.9, 'ratio', value < 0.9);
}

/**
 * How the five targets stand, by the same thresholds as the alerts: `counted` in the last 5 minutes, `gauges` at `at`
 * (ms). Too little to judge by is null, and ok; what no process tells is null, and not.
 */
export function measure(counted: Counts, gauges: Gauges, at: number): Target[] {
  return [
    responseTime(counted, gauges),
    queue(gauges, at),
    failedJobs(gauges),
    hitRatio(counted, gauges),
    cacheMemory(gauges),
  ];
}
