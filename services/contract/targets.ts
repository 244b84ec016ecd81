import type { Endpoint } from './endpoint.ts';
import { endpoints } from './endpoints.ts';
import type { Target } from './pulse.ts';

type Goal = Pick<Target, 'comparison' | 'unit'> & { goal: number };

/** Goals of the operating targets. If Redis has no memory limit, `cache_memory` has no goal. */
export const targetGoals = {
  response_time_p95: { goal: 0.5, comparison: 'below', unit: 'seconds' },
  invalidation_queue: { goal: 100, comparison: 'below', unit: 'count' },
  failed_jobs: { goal: 0, comparison: 'equal', unit: 'count' },
  hit_ratio: { goal: 0.8, comparison: 'above', unit: 'ratio' },
  cache_memory: { goal: 0.9, comparison: 'below', unit: 'ratio' },
} as const satisfies Record<Target['name'], Goal>;

/**
 * Limits for the p95 of the response time in seconds, by latency class, from the request head. For an upload from the
 * last byte, because the client's network determines how long sending takes.
 */
export const latencyLimits = {
  usual: targetGoals.response_time_p95.goal,
  // Password hashing is slow on purpose.
  login: 1,
  // media-upload creates the variants of an image before it replies.
  upload: 5,
} as const;

export const latencyClassOf = ({ latencyClass }: Endpoint) => latencyClass ?? 'usual';

/** Paths with a latency limit of their own. The p95 over all routes excludes them. */
export const pathsWithOwnLimit: readonly string[] = endpoints
  .filter((endpoint) => latencyClassOf(endpoint) !== 'usual')
  .map(({ path }) => path);

/** Minimum number of requests in 5 minutes for a p95: with fewer, the slowest request alone would determine the value. */
export const minRequests = 20;
