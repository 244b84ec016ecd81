import { QueryVariableBuilder, VariableRefresh } from '@grafana/grafana-foundation-sdk/dashboard';
import type { Board } from './dashboards.ts';
import { ranking, series } from './panels.ts';
import { prometheus, quantiles, rates } from './queries.ts';

const service = new QueryVariableBuilder('service')
  .label('Service')
  .datasource(prometheus)
  .query('label_values(service:processes_up:sum, service)')
  .refresh(VariableRefresh.OnDashboardLoad)
  .current({ text: 'gateway', value: 'gateway' });

const ofService = 'service="$service"';

export const serviceBoard: Board = {
  uid: 'service',
  title: 'Service',
  description: 'One service: its requests and its processes',
  variables: [service],
  panels: [
    series({
      title: 'How many requests does the service get, by status?',
      description:
        'Normal: as yesterday at this time. Requests that did not reach the service are on the dashboard Gateway only.',
      unit: 'reqps',
      queries: rates(`http_request_duration_seconds_count{${ofService}}`, ['service', 'status']),
    }),
    series({
      title: 'How long do requests take in the service?',
      description: 'Normal: 95 % under 100 ms; logins and uploads are slower. The points lead to traces.',
      unit: 's',
      goal: { below: 0.5 },
      queries: quantiles(`http_request_duration_seconds_bucket{${ofService}}`, [50, 95, 99]),
    }),
    ranking({
      title: 'Which endpoints of the service are slowest?',
      description:
        'Normal: under 100 ms. 95th percentile. If the dashboard Gateway shows far more, the gateway or the network is slow.',
      unit: 's',
      goal: { below: 0.5 },
      queries: { '{{method}} {{route}}': `endpoint:http_request_duration_seconds:p95_5m{${ofService}} > 0` },
    }),
    series({
      title: 'How many processes of the service are up?',
      description: 'Normal: all that were started, at least 1. 0 means that the service is down.',
      goal: { from: 1 },
      queries: { '{{service}}': `service:processes_up:sum{${ofService}}` },
    }),
    series({
      title: 'How long have the processes been running?',
      description: 'Normal: since the last release. A line that drops to 0 is a restart.',
      unit: 'dtdurations',
      queries: { '{{instance}}': `time() - process_start_time_seconds{${ofService}}` },
    }),
    series({
      title: 'How much CPU does each process use?',
      description: 'Normal: under 70 % of a core. At 100 % requests wait; start more processes.',
      unit: 'percentunit',
      goal: { below: 0.9 },
      queries: { '{{instance}}': `rate(process_cpu_seconds_total{${ofService}}[$__rate_interval])` },
    }),
    series({
      title: 'How much does the event loop lag?',
      description:
        'Normal: 25 to 35 ms, because it is measured in steps of 25 ms. Over 100 ms something blocks the event loop and all requests wait. Each value covers the time since the last scrape, also by pulse, which scrapes every 5 s: single pauses can be missing.',
      unit: 's',
      goal: { below: 0.1 },
      queries: { '{{instance}}': `nodejs_eventloop_lag_p99_seconds{${ofService}}` },
    }),
    series({
      title: 'How much memory does each process use?',
      description:
        'Normal: 100 to 300 MB and level. Worker processes of media-upload are not included, here and in CPU. Memory that only grows indicates a leak.',
      unit: 'bytes',
      queries: {
        '{{instance}} total': `process_resident_memory_bytes{${ofService}}`,
        '{{instance}} JavaScript': `nodejs_heap_size_used_bytes{${ofService}}`,
      },
    }),
    series({
      title: 'How much time does garbage collection take?',
      description: 'Normal: under 5 %. More means that memory is short or that requests allocate too much.',
      unit: 'percentunit',
      goal: { below: 0.1 },
      queries: {
        '{{instance}}': `sum by (instance) (rate(nodejs_gc_duration_seconds_sum{${ofService}}[$__rate_interval]))`,
      },
    }),
  ],
};
