import { targetGoals } from '@content-platform/contract';
import type { Board } from './dashboards.ts';
import { series } from './panels.ts';
import { quantiles, rates } from './queries.ts';

export const cache: Board = {
  uid: 'cache',
  title: 'Cache and invalidation',
  description: 'Reads through the cache, clears, the Kafka consumer and its failed jobs',
  panels: [
    series({
      title: 'How many reads are hits, misses and bypasses?',
      description: 'Normal: mostly hit, some miss, no bypass (Redis cannot be used; see Stores).',
      unit: 'rps',
      queries: rates('cache_reads_total', ['outcome']),
    }),
    series({
      title: 'What is the hit ratio of each model?',
      description:
        'Normal: over 90 % for each model that is read often. A model that was cleared as a whole starts at 0.',
      unit: 'percentunit',
      goal: { from: targetGoals.hit_ratio.goal },
      queries: { '{{model}}': 'model:cache_reads:hit_ratio_10m' },
    }).max(1),
    series({
      title: 'How many reads does each model have?',
      description: 'Normal: as yesterday at this time. With few reads the hit ratios are not meaningful.',
      unit: 'rps',
      queries: { '{{model}}': 'model:cache_reads:rate10m' },
    }),
    series({
      title: 'How long after a change is the record cleared?',
      description:
        'Normal: under 0.1 s for http, at most about 1 s for kafka. Minutes mean that Kafka or Redis was unavailable. The points lead to traces.',
      unit: 's',
      queries: quantiles('invalidation_delay_seconds_bucket', [95], ['source']),
    }),
    series({
      title: 'How many clears are there?',
      description:
        'Normal: http and kafka follow the edits, retry follows retried jobs. pending, recovery and watch are rare: they repair refused, lost or missing announcements.',
      unit: 'ops',
      queries: rates('invalidation_delay_seconds_count', ['source']),
    }),
    series({
      title: 'How many keys do clears delete?',
      description:
        'Normal: about one for each clear. Many at once mean that a whole model was cleared; misses follow.',
      unit: 'ops',
      queries: rates('cache_keys_deleted_total', ['source']),
    }),
    series({
      title: 'How many events does the consumer process?',
      description: 'Normal: as many as are announced. 0 while events wait: the consumer is stalled.',
      unit: 'eps',
      queries: { events: 'invalidation:events_processed:rate5m' },
    }),
    series({
      title: 'How many clears wait for Redis?',
      description:
        'Normal: 0. Redis refused these clears. They are carried out before the cache is used again and count in the queue.',
      goal: { below: targetGoals.invalidation_queue.goal },
      queries: { clears: 'max(invalidation_pending_clears)' },
    }),
    series({
      title: 'How old is the measurement of the queue?',
      description:
        'Normal: a few seconds. More than a minute means that Kafka is unavailable and the number of waiting events is unknown. Empty without Kafka.',
      unit: 's',
      goal: { below: 60 },
      queries: { measured: 'time() - max(invalidation_queue_measured_timestamp_seconds > 0)' },
    }),
    series({
      title: 'How many changes were not announced?',
      description:
        'Normal: 0. Each of these records was outdated in the cache for about two seconds, because the content server did not announce it.',
      goal: { below: 1 },
      queries: { '{{model}}': 'sum by (model) (increase(invalidation_missed_total[15m]))' },
    }),
    series({
      title: 'Why do events fail?',
      description: 'Normal: 0. Events of the last hour that became failed jobs, by class of failure.',
      goal: { below: 1 },
      queries: { '{{class}}': 'sum by (class) (increase(failed_jobs_total[1h]))' },
    }),
  ],
};
