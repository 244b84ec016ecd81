import type { Endpoint } from './endpoint.ts';
import { endpoints } from './endpoints.ts';
import type { Target } from './pulse.ts';

type Goal = Pick<Target, 'comparison' | 'unit'> & { goal: number };

/**
 * The goals of the five targets. /pulse and the dashboards read them; a test compares the Prometheus rules with them.
 * Without a limit of its memory Redis has no goal for `cache_memory`.
 */
export const targetGoals = {
  response_time_p95: { goal: 0.5, comparison: 'below', unit: 'seconds' },
  invalidation_queue: { goal: 100, comparison: 'below', unit: 'count' },
  failed_jobs: { goal: 0, comparison: 'equal', unit: 'count' },
  hit_ratio: { goal: 0.8, comparison: 'above', unit: 'ratio' },
  cache_memory: { goal: 0.9, comparison: 'below', unit: 'ratio' },
} as const satisfies Record<Target['name'], Goal>;

/**
 * How long 95 % of the requests of a route may take, in seconds, by the route's class. The time of a request begins with
 * its head; that of an upload begins with its last byte, because sending the file takes as long as the client's network.
 */
export const latencyLimits = {
  usual: targetGoals.response_time_p95.goal,
  // Password hashing is slow on purpose.
  login: 1,
  // media-upload makes the variants of a picture before it replies.
  upload: 5,
} as const;
export type LatencyClass = keyof typeof latencyLimits;

/** The class of an endpoint's latency limit. */
export function latencyClassOf({ latencyClass }: Endpoint): LatencyClass {
  return latencyClass ?? 'usual';
}

/** Paths that have a latency limit of their own, and are therefore left out of the p95 over all routes. */
export const pathsWithOwnLimit: readonly string[] = endpoints
  .filter((endpoint) => latencyClassOf(endpoint) !== 'usual')
  .map(({ path }) => path);

/** With fewer requests in 5 minutes the slowest one alone would decide. */
export const minRequests = 20;
