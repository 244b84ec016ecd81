import { durationBuckets } from '@content-platform/chassis';
import type { Scrape } from './scrape.ts';

/**
 * Counts by key: `request|GET /api/me|0.05` (requests in the bucket up to 0.05 s, not cumulative),
 * `failed|GET /api/me`, `read|webform|hit`, `missed|webform`.
 */
export type Counts = ReadonlyMap<string, number>;

/** One copy of each key, because the samples of an hour keep thousands of them. */
const copies = new Map<string, string>();

function add(counts: Map<string, number>, key: string, value: number): void {
  if (!copies.has(key)) copies.set(key, key);
  if (value > 0) counts.set(copies.get(key)!, (counts.get(key) ?? 0) + value);
}

/** 501 is a feature that is switched off. */
const isFailure = (status: string) => status.startsWith('5') && status !== '501';

function addRequests(counts: Map<string, number>, scrape: Scrape): void {
  const routes = new Map<string, Map<number, number>>();
  for (const { labels, value, metricName } of scrape.get('http_request_duration_seconds') ?? []) {
    if (labels['service'] !== 'gateway') continue;
    const route = `${labels['method']} ${labels['route']}`;
    if (metricName?.endsWith('_count') && isFailure(String(labels['status'])))
      add(counts, `failed|${route}`, value);
    if (!metricName?.endsWith('_bucket')) continue;
    const bound = labels['le'] === '+Inf' ? Infinity : Number(labels['le']);
    const buckets = routes.get(route) ?? new Map<number, number>();
    buckets.set(bound, (buckets.get(bound) ?? 0) + value);
    routes.set(route, buckets);
  }
  for (const [route, buckets] of routes) {
    let below = 0;
    // Prometheus's buckets are cumulative.
    for (const [bound, value] of [...buckets].toSorted(([a], [b]) => a - b)) {
      add(counts, `request|${route}|${bound}`, value - below);
      below = value;
    }
  }
}

export function countersOf(scrape: Scrape): Counts {
  const counts = new Map<string, number>();
  addRequests(counts, scrape);
  for (const { labels, value } of scrape.get('cache_reads_total') ?? [])
    add(counts, `read|${labels['model']}|${labels['outcome']}`, value);
  for (const { labels, value } of scrape.get('invalidation_missed_total') ?? [])
    add(counts, `missed|${labels['model']}`, value);
  return counts;
}

/** Returns the increases since `before`. A counter that went down was reset. */
export function increase(now: Counts, before: Counts): Counts {
  const increases = new Map<string, number>();
  for (const [key, value] of now) {
    const old = before.get(key) ?? 0;
    add(increases, key, value < old ? value : value - old);
  }
  return increases;
}

export function sum(all: Iterable<Counts>): Counts {
  const total = new Map<string, number>();
  for (const counts of all) for (const [key, value] of counts) add(total, key, value);
  return total;
}

/** Returns the largest value of a metric in `scrapes`: replicas measure the same shared value. undefined: no value. */
export function largestValue(name: string, ...scrapes: readonly Scrape[]): number | undefined {
  const values = scrapes.flatMap((scrape) => scrape.get(name) ?? []).map(({ value }) => value);
  const measured = values.filter(Number.isFinite);
  return measured.length > 0 ? Math.max(...measured) : undefined;
}

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

export const countOf = (buckets: Buckets): number =>
  [...buckets.values()].reduce((total, count) => total + count, 0);

/** All bounds, because buckets without requests are not kept. */
const bounds = [0, ...durationBuckets];

/** Returns the 95th percentile in s like Prometheus's histogram_quantile: linear in a bucket; null: no requests. */
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
