import { targetGoals } from '@content-platform/contract';
import type { Board } from './board.ts';
import { ranking, series } from './panels.ts';
import { quantiles, rates } from './queries.ts';

/** PostgreSQL, Redis and Kafka, as our processes see them. */
export const stores: Board = {
  uid: 'stores',
  title: 'Stores',
  description: 'PostgreSQL, Redis and Kafka as our processes see them',
  panels: [
    series({
      title: 'How long do calls of PostgreSQL take?',
      description:
        'Normal: 95 % under 50 ms, waiting for a connection included. All services at once: PostgreSQL itself; one: its statements. The points lead to traces.',
      unit: 's',
      goal: { below: 0.2 },
      queries: quantiles('db_query_duration_seconds_bucket', [95], ['service']),
    }),
    series({
      title: 'How many calls of PostgreSQL are there?',
      description:
        'Normal: as yesterday at this time. content-cache far more: the cache is passed by or cold.',
      unit: 'ops',
      queries: [rates('db_query_duration_seconds_count', ['service'])],
    }),
    ranking({
      title: 'Which calls keep PostgreSQL busy?',
      description:
        'Normal: under 1. Seconds a second that calls took together: the number of them that are under way at a time.',
      queries: [
        {
          expr: 'sum by (service, operation) (rate(db_query_duration_seconds_sum[5m]))',
          legend: '{{service}} {{operation}}',
        },
      ],
    }),
    series({
      title: 'How many queries are slow?',
      description:
        'Normal: 0. Queries over SLOW_QUERY_MS (200 ms unless configured) within ten minutes; more than five fire SlowQueries. Which: Slow log.',
      goal: { below: 5 },
      queries: [{ expr: 'sum by (service) (increase(slow_queries_total[10m]))', legend: '{{service}}' }],
    }),
    series({
      title: 'How many rows of the slow log were lost?',
      description:
        'Normal: 0. Within an hour; the logs database was away or too slow. Requests do not wait for it.',
      goal: { below: 1 },
      queries: [{ expr: 'sum by (service) (increase(slow_log_dropped_total[1h]))', legend: '{{service}}' }],
    }),
    series({
      title: 'How much memory does Redis use?',
      description:
        'Normal: level, under the limit. At the limit it throws out what is read seldom. A limit of 0 is none.',
      unit: 'bytes',
      queries: [
        { expr: 'max(cache_memory_bytes)', legend: 'used' },
        { expr: 'max(cache_memory_limit_bytes)', legend: 'limit' },
      ],
    }),
    series({
      title: 'How much of its memory limit will Redis need in a day?',
      description:
        'Normal: under 100 %, if the memory goes on as in the last six hours. Nothing is shown where Redis has no limit.',
      unit: 'percentunit',
      goal: { below: 1 },
      queries: [{ expr: 'predict_linear(cache:memory:ratio[6h], 86400)', legend: 'in a day' }],
    }),
    series({
      title: 'How many keys does Redis evict?',
      description:
        'Normal: 0. Within ten minutes; Redis is full and evicts what is read least, failed logins among it.',
      goal: { below: 1 },
      queries: [{ expr: 'max(increase(cache_evictions_total[10m]))', legend: 'keys' }],
    }),
    series({
      title: 'How many reads pass Redis by?',
      description: 'Normal: 0. Redis is away or too slow: PostgreSQL answers, and nothing old is served.',
      unit: 'rps',
      goal: { below: 1 },
      queries: [
        {
          expr: 'sum by (model) (rate(cache_reads_total{outcome="bypass"}[$__rate_interval]))',
          legend: '{{model}}',
        },
      ],
    }),
    series({
      title: 'How many events of Kafka wait, as each process sees it?',
      description:
        'Normal: 0, and the same for all. Each asks the broker by itself: one that differs has lost it.',
      goal: { below: targetGoals.invalidation_queue.goal },
      queries: [{ expr: 'invalidation_queue_length', legend: '{{instance}}' }],
    }),
  ],
};
