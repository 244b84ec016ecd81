import { expect, test } from '@jest/globals';
import {
  endpoints,
  minRequests,
  latencyClassOf,
  pathsWithOwnLimit,
  targetGoals,
} from '@content-platform/contract';
import { all, rules } from './rules.ts';

const expressionOf = (alert: string) =>
  new RegExp(`- alert: ${alert}\n[^]*?expr:([^]*?)\n +for:`).exec(rules)![1]!.replaceAll(/\s+/g, ' ');
const { response_time_p95: time, invalidation_queue: queue, failed_jobs: jobs } = targetGoals;
const { hit_ratio: hits, cache_memory: memory } = targetGoals;

test.each([
  ['ApiLatencyP95High', `gateway:judged_requests:p95_5m > ${time.goal} `],
  ['ApiLatencyP95High', `* 300 >= ${minRequests}`],
  ['RouteLatencyP95High', `* 300 >= ${minRequests}`],
  ['InvalidationQueueLong', `invalidation:queue_length:max >= ${queue.goal}`],
  ['FailedJobs', `max(failed_jobs_open) > ${jobs.goal}`],
  ['CacheHitRatioLow', `cache:cache_reads:hit_ratio_10m < ${hits.goal} `],
  ['CacheMemoryHigh', `cache:memory:ratio > ${memory.goal}`],
  ['CacheMemoryGrowing', `cache:memory:ratio <= ${memory.goal}`],
])('%s goes off at the target: %s', (alert, condition) => {
  expect(`${expressionOf(alert)} `).toContain(condition);
});

test('the latency budget matches the target', () => {
  const bounds = all(rules, /_bucket\{service="gateway", [^}]*le="([\d.]+)"\}/g).map(Number);
  expect(new Set(bounds)).toEqual(new Set([time.goal]));
});

test('the p95 over all routes excludes exactly the routes with their own limit', () => {
  const patterns = new Set(all(rules, /route!~"(.+?)"/g));
  expect(patterns.size).toBe(1);
  for (const pattern of patterns) {
    const left = endpoints.filter(({ path }) => new RegExp(`^(?:${pattern})$`).test(path));
    expect(left.map(({ path }) => path)).toEqual(pathsWithOwnLimit);
    // The rules name paths without a method, so every method of a path must be excluded.
    expect(left.every((endpoint) => latencyClassOf(endpoint) !== 'usual')).toBe(true);
  }
});
