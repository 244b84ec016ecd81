import { expect, test } from '@jest/globals';
import { endpoints, latencyLimits } from '@content-platform/contract';
import { sentSpans } from '@content-platform/chassis/testing/sent-spans.ts';
import { until } from '../test/support/wait.ts';
import { parseServerTiming } from './observe.ts';
import { machineToken, mint } from './testing/tokens.ts';
import { useTestGateway } from './testing/use-test-gateway.ts';

/** Threshold for slow requests in ms. High enough that a fast request stays below it on a busy machine. */
const slowRequestMs = 10_000;
const fixture = useTestGateway({ slowRequestMs, timeouts: { drain: 100 } });

const ask = (path: string, token = mint()) =>
  fixture.ask(path, { headers: { Authorization: `Bearer ${token}`, 'X-Request-Id': 'slow-1' } });

const metricsText = () => fixture.gateway.metrics.registry.metrics();

test.each([
  ['db;dur=12.3;desc="2", cache;desc="hit"', { database_ms: 12.3, database_calls: 2, cache: 'hit' }],
  ['db;dur=0.0;desc="0"', { database_ms: 0, database_calls: 0, cache: undefined }],
  ['cache;desc="bypass"', { database_ms: undefined, database_calls: undefined, cache: 'bypass' }],
  ['total;dur=1', { database_ms: undefined, database_calls: undefined, cache: undefined }],
  [undefined, { database_ms: undefined, database_calls: undefined, cache: undefined }],
])('Server-Timing %s', (value, expected) => {
  expect(parseServerTiming(value)).toEqual(expected);
});

test('stores a slow request as one row with caller, route and service time, and sends its trace', async () => {
  const sent = sentSpans();
  fixture.upstream.answer = (_request, response) => {
    response.setHeader('Server-Timing', 'db;dur=170.5;desc="3", cache;desc="miss"');
    fixture.skipTime(slowRequestMs + 1);
    response.end('{}');
  };
  await (await ask('/api/content/webform/12?view=full')).text();
  await (await ask('/api/content/webform/13', machineToken('cms', 'content:read'))).text();
  const { slow } = fixture.gateway;
  await until('both rows are stored', () => slow.length === 2);
  expect(slow[0]).toMatchObject({
    method: 'GET',
    route: '/api/content/:model/:id',
    status: 200,
    request_id: 'slow-1',
    user_id: '7',
    cache: 'miss',
    database_calls: 3,
    database_ms: 170.5,
  });
  expect(slow[0]!.duration_ms).toBeGreaterThan(slowRequestMs);
  expect(slow[1]!.user_id).toBe('cms');
  expect(new Set(sent.map(({ traceId }) => traceId))).toEqual(new Set(slow.map((row) => row.trace_id)));
  const metrics = await metricsText();
  expect(metrics).toContain('slow_requests_total{route="/api/content/:model/:id"} 2');
  expect(metrics).toContain('slow_requests_total{route="/api/letters"} 0');
});

test('stores no row for a fast request, also if its refused body is drained slowly', async () => {
  await (await ask('/api/me')).text();
  const head = 'POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
  const { received } = fixture.open(`${head}Content-Length: 99999\r\n\r\n`);
  await until('the reply has arrived', () => received().includes('payload_too_large'));
  fixture.skipTime(2 * slowRequestMs);
  await until('the request has ended', () => fixture.gateway.log.join('').includes('"status":413'));
  expect(fixture.gateway.slow).toEqual([]);
});

test('observes durations only under path templates, with all series from the start', async () => {
  await (await ask('/api/content/webform/12')).text();
  await (await ask('/api/nothing/12')).text();
  await fixture.ask('/api/me', { method: 'PROPFIND' });
  const last = /count\{service="gateway",method="other",route="unknown",status="405"\} 1/;
  const metrics = await until('the last request is observed', async () => {
    const text = await metricsText();
    return last.test(text) && text;
  });
  const series = metrics.matchAll(/http_request_duration_seconds_count\{.*?route="([^"]*)"/g);
  const routes = [...series].map(([, route]) => route!);
  expect(routes).toEqual(expect.arrayContaining(['/api/admin/cache/clear-pattern', 'unknown']));
  expect(routes.filter((route) => /nothing|12/.test(route))).toEqual([]);
});

test('exports the latency limit of each route as a metric for alerts', async () => {
  const metrics = await metricsText();
  for (const { method, path, latencyClass = 'usual' } of endpoints) {
    const labels = `method="${method}",route="${path}",class="${latencyClass}"`;
    expect(metrics).toContain(`latency_limit_seconds{${labels}} ${latencyLimits[latencyClass]}`);
  }
});

test('logs no query, body or token; logs a 5xx at info', async () => {
  const token = mint();
  fixture.upstream.answer = (_request, response) =>
    response.writeHead(500, { 'X-Request-Id': 'slow-1' }).end('{}');
  await (await ask('/api/me?secret=hush', token)).text();
  const { log } = fixture.gateway;
  const line = await until('it is logged', () => log.find((entry) => entry.includes('"status":500')));
  const expected = { level: 'info', route: '/api/me', method: 'GET', request_id: 'slow-1' };
  expect(JSON.parse(line)).toMatchObject(expected);
  expect(log.join('')).not.toMatch(/hush|eyJ/);
});
