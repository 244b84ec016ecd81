import { expect, test } from '@jest/globals';
import type { PulseReport } from '@content-platform/contract';
import { overviewPage, type Overview } from './overview.ts';

const slow = { count: 1, slowest_ms: 700, newest_at: '2026-01-02T03:04:05.000Z', trace_id: 'ab'.repeat(16) };
const report: PulseReport = {
  at: '2026-01-02T03:04:06.000Z',
  targets: [
    { name: 'hit_ratio', value: 0.9, goal: 0.8, comparison: 'above', unit: 'ratio', ok: true },
    { name: 'failed_jobs', value: null, goal: 0, comparison: 'equal', unit: 'count', ok: false },
  ],
  routes: [],
  cache: { memory_bytes: null, memory_limit_bytes: null, models: [] },
  processes: [],
  slow: {
    requests: [{ method: 'GET', route: '/api/me', ...slow }],
    queries: [{ service: 'auth', statement: 'SELECT <$1>', ...slow }],
  },
  failed_jobs: null,
  alert_receivers: ['slack'],
};
const show = (more: Partial<Overview> = {}) =>
  overviewPage({ report, samples: [], links: {}, mayRetry: true, ...more }).text;

test('names missed and unknown targets in words', () => {
  expect(show()).toContain('1 of 2 missed: failed jobs');
  expect(show()).toContain('unknown');
  const [ok] = report.targets;
  expect(show({ report: { ...report, targets: [ok!] } })).toContain('all targets are met');
  expect(show({ report: { ...report, at: null } })).toContain('waiting for the first measurement');
  const unknown = { cpu: null, memory_bytes: null, event_loop_delay: null, started_at: null, restarts: 0 };
  const letters = { service: 'letters', address: 'http://127.0.0.1:9084', up: false, ...unknown };
  expect(show({ report: { ...report, processes: [letters] } })).toContain('down: letters; 1 of 2 missed');
});

test('shows the note of a target', () => {
  const note = 'HTTP only: pending clears';
  const [target] = report.targets;
  expect(show({ report: { ...report, targets: [{ ...target!, note }] } })).toContain(note);
});

test('aligns numbers to the right, and shows a failing route before faster and slower ones', () => {
  const route = { method: 'GET', route: '/api/me', p95: 0.1, requests: 5, failed: 0 };
  const routes = [...Array.from({ length: 20 }, () => route), { ...route, route: '/api/letters', failed: 7 }];
  expect(show({ report: { ...report, routes } })).toMatch(/api\/letters<.*<td class="figure">7<\/td>/s);
});

test('shows links only if their URLs are configured', () => {
  expect(show()).not.toContain('<a ');
  const text = show({
    links: { grafana: 'https://grafana.example.com', jaeger: 'https://jaeger.example.com' },
  });
  expect(text).toContain('<a href="https://grafana.example.com">Grafana</a>');
  expect(text).toContain(`href="https://jaeger.example.com/trace/${'ab'.repeat(16)}"`);
});

test('explains parts that are unavailable or not allowed', () => {
  expect(show()).toContain('Not available. The page tries again.');
  expect(show({ mayRetry: false })).toContain('You need the scope jobs:manage to see failed jobs.');
});

test('shows a row for each class of failed jobs, with its newest job and a retry button', () => {
  const job = { id: 17, error: 'Unexpected <b>', attempts: 1, failed_at: '2026-01-02T03:04:05.000Z' };
  const group = {
    class: 'not_json' as const,
    count: 1_203,
    first_failed_at: '2025-12-24T23:59:58.000Z',
    last_failed_at: job.failed_at,
    example: job,
  };
  const other = { ...group, class: 'empty' as const, count: 2, example: { ...job, id: 9 } };
  const text = show({ report: { ...report, failed_jobs: [group, other] } });
  const rows = text.slice(text.indexOf('id="jobs"')).split('<tr>').slice(2, 4);
  const times = ['2025-12-24', '23:59:58', '2026-01-02', '03:04:05'];
  const button = 'action="/pulse/failed-jobs/17/retry"';
  for (const word of ['not_json', 'Job 17: Unexpected &#60;b&#62;', '1203', ...times, button])
    expect(rows[0]).toContain(word);
  expect(rows[1]).toContain('action="/pulse/failed-jobs/9/retry"');
  expect(show({ report: { ...report, failed_jobs: [] } })).toContain('No job is open.');
});

test('says who gets alerts, and that none gets them', () => {
  expect(show()).toContain('Alerts go to: slack.');
  expect(show({ report: { ...report, alert_receivers: [] } })).toContain('Alerts go nowhere');
  expect(show({ report: { ...report, alert_receivers: null } })).toContain('It is unknown whether alerts');
});
