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
};
const show = (more: Partial<Overview> = {}) =>
  overviewPage({ report, samples: [], links: {}, mayRetry: true, ...more }).text;

test('what is missed, and what is not known, is said in words', () => {
  expect(show()).toContain('1 of 2 missed: failed jobs');
  expect(show()).toContain('not known');
  const [ok] = report.targets;
  expect(show({ report: { ...report, targets: [ok!] } })).toContain('all targets are met');
  expect(show({ report: { ...report, at: null } })).toContain('the first look is under way');
});

test('links where they lead somewhere', () => {
  expect(show()).not.toContain('href="http');
  const text = show({
    links: { grafana: 'https://grafana.example.com', jaeger: 'https://jaeger.example.com' },
  });
  expect(text).toContain('<a href="https://grafana.example.com">Grafana</a>');
  expect(text).toContain(`href="https://jaeger.example.com/trace/${'ab'.repeat(16)}"`);
});

test('what cannot be had, or may not be seen, is said', () => {
  expect(show()).toContain('Not available at the moment.');
  expect(show({ mayRetry: false })).toContain('Who has jobs:manage sees them here.');
  expect(show({ report: { ...report, slow: null } }).match(/Not available/g)).toHaveLength(3);
});

test('statements are text', () => expect(show()).toContain('SELECT &lt;$1&gt;'));
