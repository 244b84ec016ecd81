import { models, type PulseReport } from '@content-platform/contract';
import { bucketsOf, countOf, p95, type Counts } from './sampling/counters.ts';
import { countedSince, gaugesOf } from './sampling/sampler.ts';
import { countWindowMs, measure, readsOf } from './sampling/targets.ts';
import type { Viewer } from './access/viewers.ts';
import type { PulseContext } from './context.ts';

const hourMs = 3_600_000;

function routesOf(counted: Counts): PulseReport['routes'] {
  const routes = new Set(
    [...counted.keys()].filter((key) => key.startsWith('request|')).map((key) => key.split('|')[1]!),
  );
  return [...routes]
    .map((name) => {
      const buckets = bucketsOf(counted, (route) => route === name);
      const [method, route] = name.split(' ') as [string, string];
      const failed = counted.get(`failed|${name}`) ?? 0;
      return { method, route, requests: countOf(buckets), failed, p95: p95(buckets)! };
    })
    .toSorted((a, b) => b.p95 - a.p95);
}

function cacheOf(counted: Counts, lastHour: Counts) {
  return models.map((model) => {
    const { ratio, hits, misses, bypasses } = readsOf(counted, [model]);
    const missed = lastHour.get(`missed|${model}`) ?? 0;
    return { model, hits, misses, bypasses, hit_ratio: ratio, invalidations_missed: missed };
  });
}

export async function makeReport({ sampler, ...parts }: PulseContext['sources'], { caller, token }: Viewer) {
  const [slow, jobs, receivers] = await Promise.all([
    parts.slow(),
    caller.scopes.has('jobs:manage') ? parts.jobs(token) : null,
    parts.receivers(),
  ]);
  const samples = sampler.samples();
  const last = samples.at(-1);
  const at = last?.at ?? Date.now();
  const gauges = last?.gauges ?? gaugesOf([]);
  const counted = countedSince(samples, at, countWindowMs);
  return {
    at: last ? new Date(at).toISOString() : null,
    targets: measure(counted, gauges, at),
    routes: routesOf(counted),
    cache: {
      memory_bytes: gauges.memoryBytes ?? null,
      memory_limit_bytes: gauges.memoryLimitBytes || null,
      models: cacheOf(counted, countedSince(samples, at, hourMs)),
    },
    processes: sampler.processes(),
    slow,
    failed_jobs: jobs,
    alert_receivers: receivers,
  };
}
