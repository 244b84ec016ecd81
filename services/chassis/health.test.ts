import { expect, test } from '@jest/globals';
import { collectDefaultMetrics } from 'prom-client';
import { until } from '../../test/support/wait.ts';
import { createReadinessCheck, expose } from './health.ts';
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
  const bucket = `^http_request_duration_seconds_bucket\\{le="0.025".*\\} 1 # \\{trace_id="${traceId}"\\} 0.02 [\\d.]+$`;
  expect(open.text).toMatch(new RegExp(bucket, 'm'));
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
  for (const asked of [accept, undefined, accept])
    expect((await expose(registry, asked)).text).toMatch(/^slow_queries_total 1$/m);
});

test('exposes the other metrics if a value cannot be read', async () => {
  const { registry, measured } = createMetrics('test');
  measured('free_bytes', 'Free bytes', () => Promise.reject(new Error('no such folder')));
  expect((await expose(registry, accept)).text).toMatch(/^# TYPE free_bytes gauge\n(?!free_bytes)/m);
});

test('renders each metric once', async () => {
  const register = someMetrics();
  collectDefaultMetrics({ register });
  const { text } = await expose(register, accept);
  const families = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  expect(families.length).toBeGreaterThan(10);
  expect(new Set(families).size).toBe(families.length);
});

test('renders JSON if Accept asks for it', async () => {
  const registry = someMetrics();
  await expose(registry, accept);
  const { contentType, text } = await expose(registry, 'application/json');
  expect(contentType).toBe('application/json');
  const slow = { name: 'slow_queries_total', values: [{ labels: {}, value: 1 }] };
  expect(JSON.parse(text)).toContainEqual(expect.objectContaining(slow));
});

/** A check that passes if `works` is true, and the number of its runs. */
function counted(required: boolean) {
  const state = { works: true, runs: 0 };
  const check = async () => {
    state.runs += 1;
    if (!state.works) throw new Error('unavailable');
  };
  return { state, check: { required, check } };
}

test('calls within a second share one round of checks', async () => {
  const { state, check } = counted(true);
  const [assess, began] = [createReadinessCheck({ postgres: check }), performance.now()];
  for (let asked = 0; asked < 3; asked += 1)
    for (const assessment of await Promise.all(Array.from({ length: 20 }, assess)))
      expect(assessment).toEqual({ outcomes: { postgres: 'ok' }, failing: [] });
  state.works = false;
  await until('the failure is noticed', async () => (await assess()).failing.length === 1);
  expect([state.runs, performance.now() - began > 990]).toEqual([2, true]);
});

test('the call after a failed round checks again', async () => {
  const { state, check } = counted(true);
  const assess = createReadinessCheck({ tokens: check });
  state.works = false;
  expect(await assess()).toEqual({ outcomes: { tokens: 'unavailable' }, failing: ['tokens'] });
  state.works = true;
  expect(await assess()).toEqual({ outcomes: { tokens: 'ok' }, failing: [] });
});

test('an optional check does not affect readiness, and a check that hangs is unavailable', async () => {
  const { state, check } = counted(false);
  state.works = false;
  const hanging = { required: true, check: () => new Promise(() => undefined) };
  expect(await createReadinessCheck({ redis: check, postgres: hanging })()).toEqual({
    outcomes: { redis: 'unavailable', postgres: 'unavailable' },
    failing: ['postgres'],
  });
});
