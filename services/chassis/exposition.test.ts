import { expect, test } from '@jest/globals';
import { expose } from './health.ts';
import { createMetrics, observe } from './metrics.ts';

const traceId = 'a'.repeat(32);
const accept = 'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1';

function someMetrics() {
  const metrics = createMetrics('test');
  metrics.slowQueries.inc();
  const labels = { service: 'test', method: 'GET', route: '/x', status: '200' };
  observe(metrics.requestDuration, labels, 0.02, traceId);
  observe(metrics.queryDuration, { service: 'test', operation: 'read' }, 0.02);
  return metrics.registry;
}

test('renders OpenMetrics with exemplars if Accept names it, otherwise plain text', async () => {
  const registry = someMetrics();
  const open = await expose(registry, accept);
  expect(open.contentType).toMatch(/^application\/openmetrics-text/);
  expect(open.text).toMatch(
    new RegExp(
      `^http_request_duration_seconds_bucket\\{le="0.025".*\\} 1 # \\{trace_id="${traceId}"\\} 0.02 [\\d.]+$`,
      'm',
    ),
  );
  expect(open.text.match(/trace_id/g)).toHaveLength(1);
  expect(open.text.endsWith('# EOF\n')).toBe(true);
  for (const other of [undefined, '*/*', 'text/plain']) {
    const plain = await expose(registry, other);
    expect(plain.contentType).toMatch(/^text\/plain/);
    expect(plain.text).not.toMatch(/trace_id|# EOF/);
  }
});

test('a counter keeps its name in both formats, in any order of scrapes', async () => {
  const registry = someMetrics();
  for (const asked of [accept, undefined, accept]) {
    expect((await expose(registry, asked)).text).toMatch(/^slow_queries_total 1$/m);
  }
});

test('renders each metric once', async () => {
  const { text } = await expose(someMetrics(), accept);
  const families = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  expect(families.length).toBeGreaterThan(10);
  expect(new Set(families).size).toBe(families.length);
});

test('renders JSON if Accept asks for it', async () => {
  const registry = someMetrics();
  await expose(registry, accept);
  const { contentType, text } = await expose(registry, 'application/json');
  expect(contentType).toBe('application/json');
  const families = JSON.parse(text) as { name: string; values: unknown[] }[];
  expect(families.find(({ name }) => name === 'slow_queries_total')!.values).toEqual([
    { labels: {}, value: 1 },
  ]);
});
