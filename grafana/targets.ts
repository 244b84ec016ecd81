import { targetGoals } from '@content-platform/contract';
import { dashboardOfAlert } from './alerts.ts';
import type { Board } from './board.ts';
import { light, lights, series } from './panels.ts';
import { runbookAddress } from './runbooks.ts';

/** A light that has gone red leads to what it rests on, and to what to do. */
function alertLights() {
  const names = Object.keys(dashboardOfAlert);
  const panel = lights({
    title: 'Which alerts are firing?',
    description: 'Normal: all 0. Click one for its dashboard and its runbook.',
    unit: 'none',
    goal: { below: 1 },
    queries: names.map((name) => ({
      expr: `count(ALERTS{alertname="${name}", alertstate="firing"}) or vector(0)`,
      legend: name,
    })),
  });
  for (const name of names) {
    const links = [
      { title: `${name}: dashboard`, url: `/d/${dashboardOfAlert[name]}` },
      { title: `${name}: runbook`, url: runbookAddress(name) },
    ];
    panel.overrideByName(name, [{ id: 'links', value: links }]);
  }
  return panel.span(24).height(8);
}

const windows = "Normal: below 1, a month's budget in a month.";

/** The first look: is a target missed, since when, and what is to be done. */
export const targets: Board = {
  uid: 'targets',
  title: 'Targets',
  description: 'The five targets, how fast the error budgets are used up, and the alerts',
  panels: [
    light({
      title: 'How long do 95 % of requests take?',
      description:
        'Normal: under 100 ms; the target is under 500 ms. Logins, tokens and uploads take long on purpose and are left out. More: Gateway.',
      unit: 's',
      goal: { below: targetGoals.response_time_p95.goal },
      queries: [{ expr: 'gateway:judged_requests:p95_5m', legend: '95 %' }],
    }),
    light({
      title: 'How many invalidations wait?',
      description:
        'Normal: 0, a few while records are edited; the target is under 100. Events in Kafka, and clears that Redis refused. Every process counts all of them: the largest number is shown. More: Cache and invalidation.',
      goal: { below: targetGoals.invalidation_queue.goal },
      queries: [{ expr: 'invalidation:queue_length:max', legend: 'invalidations' }],
    }),
    light({
      title: 'How many failed jobs are open?',
      description: 'Normal: 0. Each is an event that somebody has to look at. More: Cache and invalidation.',
      goal: { below: 1 },
      queries: [{ expr: 'max(failed_jobs_open)', legend: 'jobs' }],
    }),
    light({
      title: 'Which share of reads does the cache answer?',
      description:
        'Normal: over 90 %; the target is over 80 %. Few reads are mostly first reads, so it is low when little goes on. More: Cache and invalidation.',
      unit: 'percentunit',
      goal: { from: targetGoals.hit_ratio.goal },
      queries: [{ expr: 'cache:cache_reads:hit_ratio_10m', legend: 'hits' }],
    }),
    light({
      title: 'How full is the cache?',
      description:
        'Normal: under 90 % of what Redis may use. Above, what is read seldom is thrown out. Nothing is shown where Redis has no limit. More: Stores.',
      unit: 'percentunit',
      goal: { below: targetGoals.cache_memory.goal },
      queries: [{ expr: 'cache:memory:ratio', legend: 'memory' }],
    }),
    light({
      title: 'How many processes has the smallest service?',
      description: 'Normal: 1 or more. 0: a service is down. More: Service.',
      goal: { from: 1 },
      queries: [{ expr: 'min(service:processes_up:sum)', legend: 'processes' }],
    }),
    alertLights(),
    series({
      title: 'How fast is the availability budget used up?',
      description: `${windows} 99.9 % of requests may not fail. Over 14.4 in the windows of 1h and 5m calls somebody at once.`,
      goal: { below: 1 },
      queries: [{ expr: 'gateway:availability:burn_rate', legend: '{{window}}' }],
    }).span(12),
    series({
      title: 'How fast is the latency budget used up?',
      description: `${windows} 95 % of requests must take less than 500 ms. Over 14.4 in the windows of 1h and 5m calls somebody at once.`,
      goal: { below: 1 },
      queries: [{ expr: 'gateway:latency:burn_rate', legend: '{{window}}' }],
    }).span(12),
  ],
};
