import { targetGoals } from '@content-platform/contract';
import type { Board } from './board.ts';
import { series } from './panels.ts';
import { quantiles, rates } from './queries.ts';

/** Whether what clients are served is fast and new: reads, clears, the consumer, failed jobs. */
export const cache: Board = {
  uid: 'cache',
  title: 'Cache and invalidation',
  description: 'Reads through the cache, clears, the consumer of events and its failed jobs',
  panels: [
    series({
      title: 'How are reads of content answered?',
      description: 'Normal: mostly hit, some miss, no bypass. bypass: Redis cannot be used, see Stores.',
      unit: 'rps',
      queries: [rates('cache_reads_total', ['outcome'])],
    }),
    series({
      title: 'Which share of reads does the cache answer, by model?',
      description:
        'Normal: over 90 % for each model that is read often; a model that is cleared as a whole starts at 0.',
      unit: 'percentunit',
      goal: { from: targetGoals.hit_ratio.goal },
      queries: [{ expr: 'model:cache_reads:hit_ratio_10m', legend: '{{model}}' }],
    }).max(1),
    series({
      title: 'How many reads does each model have?',
      description: 'Normal: as yesterday at this time. It says how much the hit ratios mean.',
      unit: 'rps',
      queries: [{ expr: 'model:cache_reads:rate10m', legend: '{{model}}' }],
    }),
    series({
      title: 'How long after a change is it cleared?',
      description:
        'Normal: under 0.1 s for http, around 1 s for kafka at most. Minutes mean that Kafka or Redis was away in between. The points lead to traces.',
      unit: 's',
      queries: quantiles('invalidation_delay_seconds_bucket', [95], ['source']),
    }),
    series({
      title: 'How many clears are there?',
      description:
        'Normal: http and kafka as records are edited; retry when somebody retries jobs. pending, recovery and watch are rare: something was lost and is made up for.',
      unit: 'ops',
      queries: [rates('invalidation_delay_seconds_count', ['source'])],
    }),
    series({
      title: 'How many keys do clears delete?',
      description:
        'Normal: about one for each clear. Many at once: a whole model was cleared, and misses follow.',
      unit: 'ops',
      queries: [rates('cache_keys_deleted_total', ['source'])],
    }),
    series({
      title: 'How many events does the consumer process?',
      description: 'Normal: as many as come. 0 while events wait: it is stalled.',
      unit: 'eps',
      queries: [{ expr: 'invalidation:events_processed:rate5m', legend: 'events' }],
    }),
    series({
      title: 'How many refused clears wait?',
      description:
        'Normal: 0. Clears that Redis refused; they are carried out before the cache is used again. They are a part of the queue.',
      goal: { below: targetGoals.invalidation_queue.goal },
      queries: [{ expr: 'max(invalidation_pending_clears)', legend: 'clears' }],
    }),
    series({
      title: 'How old is what is known of the queue?',
      description:
        'Normal: a few seconds. More than a minute: Kafka does not answer, and events may wait unseen. Nothing is shown where there is no Kafka.',
      unit: 's',
      goal: { below: 60 },
      queries: [
        { expr: 'time() - max(invalidation_queue_measured_timestamp_seconds > 0)', legend: 'measured' },
      ],
    }),
    series({
      title: 'How many changes were not announced?',
      description:
        'Normal: 0. Each was old in the cache for up to 40 s: the content server or its events failed.',
      goal: { below: 1 },
      queries: [{ expr: 'sum by (model) (increase(invalidation_missed_total[15m]))', legend: '{{model}}' }],
    }),
    series({
      title: 'Why do events fail?',
      description: 'Normal: 0. Events within an hour that became failed jobs, by what was wrong with them.',
      goal: { below: 1 },
      queries: [{ expr: 'sum by (class) (increase(failed_jobs_total[1h]))', legend: '{{class}}' }],
    }),
  ],
};
