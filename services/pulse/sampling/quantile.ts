import { durationBuckets } from '@content-platform/chassis';
import type { Counts } from './counters.ts';

/** Number of requests by bucket; the key is the bucket's upper bound in seconds. */
type Buckets = ReadonlyMap<number, number>;

/** Returns the buckets of all routes (`GET /api/me`) for which `takes` is true. */
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

/** All bounds, because buckets without requests are not kept. */
const bounds = [0, ...durationBuckets];

/**
 * Returns the 95th percentile in seconds as Prometheus's histogram_quantile does: linear within a bucket, and the last
 * bound for larger values. null without requests.
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
