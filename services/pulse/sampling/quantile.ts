import { durationBuckets } from '@content-platform/chassis';
import type { Counts } from './counters.ts';

/** How many took at most so many seconds, and more than the bound before. */
export type Buckets = ReadonlyMap<number, number>;

/** The requests of all routes (`GET /api/me`) that `takes` says yes to. */
export function bucketsOf(counted: Counts, takes: (route: string) => boolean): Buckets {
  const buckets = new Map<number, number>();
  for (const [key, value] of counted) {
    const [kind, route, bound] = key.split('|');
    if (kind !== 'request' || !takes(route!)) continue;
    buckets.set(Number(bound), (buckets.get(Number(bound)) ?? 0) + value);
  }
  return buckets;
}

export function countOf(buckets: Buckets): number {
  return [...buckets.values()].reduce((sum, count) => sum + count, 0);
}

/** A bucket without a request is not kept, so its bound has to be known. */
const bounds = [0, ...durationBuckets];

/**
 * The 95th percentile in seconds, as Prometheus's histogram_quantile has it: evenly spread within a bucket, and the last
 * bound for what is above it. null without a request.
 */
export function p95(buckets: Buckets): number | null {
  const rank = countOf(buckets) * 0.95;
  if (rank === 0) return null;
  let below = 0;
  for (const [bound, count] of [...buckets].toSorted(([a], [b]) => a - b)) {
    if (below + count >= rank) {
      const from = bounds.findLast((one) => one < bound)!;
      return bound === Infinity ? from : from + (bound - from) * ((rank - below) / count);
    }
    below += count;
  }
  return bounds.at(-1)!;
}
