import { targetGoals } from '@content-platform/contract';
import { runbookUrl } from '../deploy/render/config.ts';
import type { Board } from './dashboards.ts';
import { statusTile, statusTiles, series } from './panels.ts';
import { runbookAddress } from './runbooks.ts';

/** Alerts of `deploy/prometheus/rules`, each with the dashboard that shows its metrics. */
export const dashboardOfAlert: Record<string, string> = {
  ServiceDown: 'service',
  ServiceRestarts: 'service',
  ErrorRateHigh: 'gateway',
  ApiLatencyP95High: 'gateway',
  RouteLatencyP95High: 'gateway',
  RequestsShed: 'gateway',
  AvailabilityBurnFast: 'gateway',
  AvailabilityBurnSlow: 'gateway',
  LatencyBurnFast: 'gateway',
  LatencyBurnSlow: 'gateway',
  SlowQueries: 'slow-log',
  CacheHitRatioLow: 'cache',
  CacheMemoryHigh: 'stores',
  CacheMemoryGrowing: 'stores',
  CacheEvictions: 'stores',
  InvalidationQueueLong: 'cache',
  InvalidationConsumerStalled: 'cache',
  InvalidationsMissed: 'cache',
  FailedJobs: 'cache',
  DiskSpaceLow: 'media',
  LoginFailuresHigh: 'gateway',
  RefreshTokenReused: 'gateway',
  ErasureStalled: 'gateway',
  MailsNotSent: 'gateway',
  MetricMissing: 'service',
};

/** A tile for each alert, with links to its dashboard and its runbook. */
function alertLights() {
  const names = Object.keys(dashboardOfAlert);
  const panel = statusTiles({
    title: 'Which alerts are firing?',
    description: 'Normal: all 0. Click an alert for its dashboard and its runbook.',
    unit: 'none',
    goal: { below: 1 },
    queries: Object.fromEntries(
      names.map((name) => [name, `count(ALERTS{alertname="${name}", alertstate="firing"}) or vector(0)`]),
    ),
  });
  for (const name of names) {
    const links = [
      { title: `${name}: dashboard`, url: `/d/${dashboardOfAlert[name]}` },
      { title: `${name}: runbook`, url: runbookAddress(name) },
      { title: `${name}: runbook in the documentation`, url: runbookUrl(name) },
    ];
    panel.overrideByName(name, [{ id: 'links', value: links }]);
  }
  return panel;
}

const windows = "Normal: under 1, which uses a month's budget in a month.";

export const targets: Board = {
  uid: 'targets',
  title: 'Targets',
  description: 'The five targets, the burn rates of the error budgets, and the alerts',
  panels: [
    statusTile({
      title: 'What is the 95th percentile of response times?',
      description:
        'Normal: under 100 ms; the target is under 500 ms. Logins, tokens and uploads are excluded. Gray: fewer than 20 requests in five minutes. Details: Gateway.',
      unit: 's',
      goal: { below: targetGoals.response_time_p95.goal },
      queries: {
        '95 %':
          'gateway:judged_requests:p95_5m and on () sum(gateway:judged_requests_bucket:rate5m{le="+Inf"}) * 300 >= 20',
      },
    }),
    statusTile({
      title: 'How many invalidations wait?',
      description:
        'Normal: 0, or a few while records are edited; the target is under 100. Kafka events that wait and clears that Redis refused. Details: Cache and invalidation.',
      goal: { below: targetGoals.invalidation_queue.goal },
      queries: { invalidations: 'invalidation:queue_length:max' },
    }),
    statusTile({
      title: 'How many failed jobs are open?',
      description:
        'Normal: 0. Each is an event that could not be processed; retry or delete it. Details: Cache and invalidation.',
      goal: { below: 1 },
      queries: { jobs: 'max(failed_jobs_open)' },
    }),
    statusTile({
      title: 'What is the cache hit ratio?',
      description:
        'Normal: over 90 %; the target is over 80 %. Gray: fewer than 300 reads in ten minutes, of which most are first reads. Details: Cache and invalidation.',
      unit: 'percentunit',
      goal: { from: targetGoals.hit_ratio.goal },
      queries: { hits: 'cache:cache_reads:hit_ratio_10m and on () sum(model:cache_reads:rate10m) >= 0.5' },
    }),
    statusTile({
      title: 'How much of its memory limit does Redis use?',
      description:
        'Normal: under 90 % of maxmemory. A full Redis evicts the least used keys. Empty if Redis has no limit. Details: Stores.',
      unit: 'percentunit',
      goal: { below: targetGoals.cache_memory.goal },
      queries: { memory: 'cache:memory:ratio' },
    }),
    statusTile({
      title: 'How many processes has the smallest service?',
      description: 'Normal: 1 or more. 0 means that a service is down. Details: Service.',
      goal: { from: 1 },
      queries: { processes: 'min(service:processes_up:sum)' },
    }),
    alertLights(),
    series({
      title: 'What is the burn rate of the availability budget?',
      description: `${windows} 99.9 % of requests must succeed, apart from those that gateways refuse because of overload (see Gateway). Over 14.4 in the windows 1h and 5m pages immediately.`,
      goal: { below: 1 },
      queries: { '{{window}}': 'gateway:availability:burn_rate' },
    }).span(12),
    series({
      title: 'What is the burn rate of the latency budget?',
      description: `${windows} 95 % of requests must take less than 500 ms. Over 14.4 in the windows 1h and 5m pages immediately.`,
      goal: { below: 1 },
      queries: { '{{window}}': 'gateway:latency:burn_rate' },
    }).span(12),
  ],
};
