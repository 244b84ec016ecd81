import { QueryVariableBuilder, VariableRefresh } from '@grafana/grafana-foundation-sdk/dashboard';
import type { Board } from './board.ts';
import { prometheus } from './data-sources.ts';
import { ranking, series } from './panels.ts';
import { quantiles, rates } from './queries.ts';

const service = new QueryVariableBuilder('service')
  .label('Service')
  .datasource(prometheus)
  .query('label_values(service:processes_up:sum, service)')
  .refresh(VariableRefresh.OnDashboardLoad)
  .current({ text: 'gateway', value: 'gateway' });

const mine = 'service="$service"';

/** One service: what it is asked, and how its processes are. */
export const serviceBoard: Board = {
  uid: 'service',
  title: 'Service',
  description: 'One service: its requests and its processes',
  variables: [service],
  panels: [
    series({
      title: 'How many requests does it get, and how do they end?',
      description:
        'Normal: as yesterday at this time. It is what the service itself saw: what never reached it is on Gateway.',
      unit: 'reqps',
      queries: [rates(`http_request_duration_seconds_count{${mine}}`, ['service', 'status'])],
    }),
    series({
      title: 'How long do its requests take?',
      description:
        'Normal: 95 % under 100 ms; auth and media-upload take longer on purpose. The points lead to traces.',
      unit: 's',
      goal: { below: 0.5 },
      queries: quantiles(`http_request_duration_seconds_bucket{${mine}}`, [50, 95, 99]),
    }),
    ranking({
      title: 'Which of its endpoints take longest?',
      description:
        'Normal: under 100 ms. 95 % of requests are faster than this. Far below what Gateway shows of them: the way there is slow.',
      unit: 's',
      goal: { below: 0.5 },
      queries: [
        {
          expr: `endpoint:http_request_duration_seconds:p95_5m{${mine}} > 0`,
          legend: '{{method}} {{route}}',
        },
      ],
    }),
    series({
      title: 'How many of its processes answer?',
      description: 'Normal: all that were started, 1 or more. 0: it is down.',
      goal: { from: 1 },
      queries: [{ expr: `service:processes_up:sum{${mine}}`, legend: '{{service}}' }],
    }),
    series({
      title: 'How long have its processes been running?',
      description:
        'Normal: since the last release. A line that starts anew is a process that was started anew.',
      unit: 'dtdurations',
      queries: [{ expr: `time() - process_start_time_seconds{${mine}}`, legend: '{{instance}}' }],
    }),
    series({
      title: 'How much of a processor does each process use?',
      description: 'Normal: under 70 %. At 100 % requests wait: more processes are needed.',
      unit: 'percentunit',
      goal: { below: 0.9 },
      queries: [
        { expr: `rate(process_cpu_seconds_total{${mine}}[$__rate_interval])`, legend: '{{instance}}' },
      ],
    }),
    series({
      title: 'How late is the event loop?',
      description:
        'Normal: 10 to 20 ms, since it is measured in steps of 10. Over 100 ms something blocks it, and all requests wait.',
      unit: 's',
      goal: { below: 0.1 },
      queries: [{ expr: `nodejs_eventloop_lag_p99_seconds{${mine}}`, legend: '{{instance}}' }],
    }),
    series({
      title: 'How much memory does each process use?',
      description:
        'Normal: 100 to 300 MB, level; media-upload more while it processes pictures. What only grows is a leak.',
      unit: 'bytes',
      queries: [
        { expr: `process_resident_memory_bytes{${mine}}`, legend: '{{instance}} in all' },
        { expr: `nodejs_heap_size_used_bytes{${mine}}`, legend: '{{instance}} JavaScript' },
      ],
    }),
    series({
      title: 'How much time goes into collecting garbage?',
      description: 'Normal: under 5 %. More: memory is short, or far too much is made and thrown away.',
      unit: 'percentunit',
      goal: { below: 0.1 },
      queries: [
        {
          expr: `sum by (instance) (rate(nodejs_gc_duration_seconds_sum{${mine}}[$__rate_interval]))`,
          legend: '{{instance}}',
        },
      ],
    }),
  ],
};
