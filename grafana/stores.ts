import { targetGoals } from '@content-platform/contract';
import type { Board } from './dashboards.ts';
import { ranking, series } from './panels.ts';
import { quantiles, rates } from './queries.ts';

export const stores: Board = {
  uid: 'stores',
  title: 'Stores',
  description: 'PostgreSQL, Redis and Kafka as the services see them',
  panels: [
    series({
      title: 'How long do calls to PostgreSQL take?',
      description:
        'Normal: 95 % under 50 ms, including the wait for a connection. If all services are slow, check PostgreSQL; if one is, check its statements. The points lead to traces.',
      unit: 's',
      goal: { below: 0.2 },
      queries: quantiles('db_query_duration_seconds_bucket', [95], ['service']),
    }),
    series({
      title: 'How many calls to PostgreSQL are there?',
      description:
        'Normal: as yesterday at this time. Far more from content-cache means that reads bypass the cache or the cache is empty.',
      unit: 'ops',
      queries: rates('db_query_duration_seconds_count', ['service']),
    }),
    ranking({
      title: 'Which calls use PostgreSQL most?',
      description:
        'Normal: under 1. Total seconds of calls per second, which is the average number of calls in progress.',
      queries: {
        '{{service}} {{operation}}': 'sum by (service, operation) (rate(db_query_duration_seconds_sum[5m]))',
      },
    }),
    series({
      title: 'How many queries are slow?',
      description:
        'Normal: 0. Queries over SLOW_QUERY_MS (default 200 ms) in ten minutes. SlowQueries fires above five. The dashboard Slow log lists them.',
      goal: { below: 5 },
      queries: { '{{service}}': 'sum by (service) (increase(slow_queries_total[10m]))' },
    }),
    series({
      title: 'How many rows of the slow log were lost?',
      description:
        'Normal: 0, in one hour. The logs database was unavailable or too slow. Requests do not wait for it.',
      goal: { below: 1 },
      queries: { '{{service}}': 'sum by (service) (increase(slow_log_dropped_total[1h]))' },
    }),
    series({
      title: 'How much memory does Redis use?',
      description:
        'Normal: level and under the limit. At the limit Redis evicts the least used keys. 0 means no limit.',
      unit: 'bytes',
      queries: { used: 'max(cache_memory_bytes)', limit: 'max(cache_memory_limit_bytes)' },
    }),
    series({
      title: 'How much of its memory limit will Redis need in a day?',
      description: 'Normal: under 100 %, predicted from the last six hours. Empty if Redis has no limit.',
      unit: 'percentunit',
      goal: { below: 1 },
      queries: { 'in a day': 'predict_linear(cache:memory:ratio[6h], 86400)' },
    }),
    series({
      title: 'How many keys does Redis evict?',
      description:
        'Normal: 0, in ten minutes. Redis is full and evicts the least used keys, including counters of failed logins.',
      goal: { below: 1 },
      queries: { keys: 'max(increase(cache_evictions_total[10m]))' },
    }),
    series({
      title: 'How many reads bypass Redis?',
      description:
        'Normal: 0. Redis is unavailable or too slow, so records are read from PostgreSQL. No outdated record is returned.',
      unit: 'rps',
      goal: { below: 1 },
      queries: {
        '{{model}}': 'sum by (model) (rate(cache_reads_total{outcome="bypass"}[$__rate_interval]))',
      },
    }),
    series({
      title: 'How long is the invalidation queue in the view of each process?',
      description:
        'Normal: 0 and equal for all. Each process queries Kafka itself; a process with another value has lost its connection.',
      goal: { below: targetGoals.invalidation_queue.goal },
      queries: { '{{instance}}': 'invalidation_queue_length' },
    }),
  ],
};
