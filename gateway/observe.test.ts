import { expect, test } from '@jest/globals';
import { endpoints, latencyLimits } from '@content-platform/contract';
import { createLogger } from '@content-platform/chassis';
import { sentSpans } from '@content-platform/chassis/testing/sent-spans.ts';
import { until } from '../test/support/wait.ts';
import { createRefusalLog, parseServerTiming } from './observe.ts';
import type { RequestContext } from './request-context.ts';
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

test.each(['/api/media/:id/:variant', '/api/me/export'])('no row for a slow client of %s', async (route) => {
  let finish: () => unknown = () => undefined;
  fixture.upstream.answer = (_request, response) => {
    response.write('the first part');
    finish = () => response.end();
  };
  const file = await ask(route.replace(':id/:variant', '12/large'));
  fixture.skipTime(2 * slowRequestMs);
  finish();
  await file.text();
  const isLogged = () => fixture.gateway.log.join('').includes(`"route":"${route}"`);
  await until('the request has ended', isLogged);
  expect(fixture.gateway.slow).toEqual([]);
});

test('stores no row for a file of the gateway itself that its client receives slowly', async () => {
  const get = (file: string) => `GET /api/docs/${file} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const sent = () => fixture.gateway.log.join('').match(/"route":"\/api\/docs\/:asset"/g)?.length ?? 0;
  const socket = fixture.connect().pause();
  socket.write(get('start.js') + get('swagger-ui-bundle.js').repeat(12));
  await until('the first is sent', () => sent() > 0);
  fixture.skipTime(2 * slowRequestMs);
  socket.resume();
  await until('all are sent', () => sent() === 13);
  expect(fixture.gateway.slow).toEqual([]);
});

test('observes durations only under path templates, with all series from the start', async () => {
  await (await ask('/api/content/webform/12')).text();
  await (await ask('/api/nothing/12')).text();
  await fixture.ask('/api/me', { method: 'OPTIONS' });
  await fixture.ask('/api/me', { method: 'PROPFIND' });
  const last = /count\{service="gateway",method="other",route="unknown",status="405"\} 1/;
  const metrics = await until('the last request is observed', async () => {
    const text = await metricsText();
    return last.test(text) && text;
  });
  const series = metrics.matchAll(/http_request_duration_seconds_count\{.*?route="([^"]*)"/g);
  const routes = [...series].map(([, route]) => route!);
  expect(routes).toEqual(expect.arrayContaining(['/api/admin/cache/clear-pattern', 'unknown']));
  expect(metrics).not.toMatch(/route="[^"]*(nothing|12)|method="OPTIONS"/);
});

test('exports the latency limit of each route as a metric for alerts', async () => {
  const metrics = await metricsText();
  for (const { method, path, latencyClass = 'usual' } of endpoints) {
    const labels = `method="${method}",route="${path}",class="${latencyClass}"`;
    expect(metrics).toContain(`latency_limit_seconds{${labels}} ${latencyLimits[latencyClass]}`);
  }
});

test('logs no query, body or token; logs a 5xx at info', async () => {
  fixture.upstream.answer = (_request, response) =>
    response.writeHead(500, { 'X-Request-Id': 'slow-1' }).end('{"hush":1}');
  await (await fixture.post()).text();
  await (await ask('/api/me?secret=hush')).text();
  const { log } = fixture.gateway;
  const line = await until('it is logged', () => log.find((entry) => /\/api\/me","status":500/.test(entry)));
  const expected = { level: 'info', route: '/api/me', method: 'GET', request_id: 'slow-1' };
  expect(JSON.parse(line)).toMatchObject(expected);
  expect(log.join('')).not.toMatch(/hush|eyJ|a\\?":1/);
});

const withMessage = (lines: readonly string[], message: RegExp) =>
  lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => message.test(String(line['message'])));

test('logs a 403 with the caller', async () => {
  const { log } = fixture.gateway;
  expect((await ask('/api/admin/users/12')).status).toBe(403);
  await until('the line was written', () => withMessage(log, /forbidden/).length === 1);
  const expected = { caller: 'user:7', method: 'GET', address: '127.0.0.1', request_id: 'slow-1' };
  const fields = { ...expected, route: '/api/admin/users/:id' };
  expect(withMessage(log, /forbidden/)[0]).toMatchObject({ ...fields, level: 'info' });
  expect(withMessage(log, /^request$/)[0]).toMatchObject({ ...fields, path: '/api/admin/users/12' });
});

test('the line of a 403 has the trace of its own request', async () => {
  sentSpans();
  await fixture.start({ slowRequestMs });
  fixture.upstream.answer = (_request, response) => {
    fixture.skipTime(slowRequestMs + 1);
    response.writeHead(403).end('{}');
  };
  for (let n = 0; n < 2; n += 1) await (await ask('/api/me')).text();
  const { log, slow } = fixture.gateway;
  await until('both are stored', () => slow.length === 2);
  const traces = withMessage(log, /forbidden/).map((line) => line['trace_id']);
  expect(traces).toEqual(slow.map((row) => row.trace_id));
});

test('logs one line for repeated 401 of an address, without the token', async () => {
  const { log } = fixture.gateway;
  const token = mint({ exp: 1 });
  for (let n = 0; n < 9; n += 1) await ask('/api/me', token);
  expect(withMessage(log, /401/)).toEqual([]);
  for (let n = 0; n < 5; n += 1) await ask('/api/me', token);
  await until('the line was written', () => withMessage(log, /401/).length > 0);
  expect(withMessage(log, /401/)).toMatchObject([{ level: 'warn', address: '127.0.0.1', route: '/api/me' }]);
  expect(log.join()).not.toContain(token);
});

/** A log of refusals. `pass` moves its clock. */
function refusalsOf(status: number) {
  const lines: string[] = [];
  let time = 0;
  const logger = createLogger('gateway', 'info', { write: (line) => void lines.push(line) });
  const note = createRefusalLog(logger, () => time);
  const refuse = (id?: number, address = '192.0.2.1') => {
    const caller = id === undefined ? undefined : { kind: 'user', id };
    const context = { requestId: 'r', address, caller } as RequestContext;
    note(context, { method: 'GET', route: '/api/admin/users', status });
  };
  return { lines, refuse, pass: (ms: number) => void (time += ms) };
}

test('logs 30 of the 403 of a caller within a minute, and that there are more', () => {
  const { lines, refuse, pass } = refusalsOf(403);
  // Many addresses without a caller must not hide the caller.
  for (let n = 0; n < 10_000; n += 1) refuse(undefined, `2001:db8:0:${n.toString(16)}::1`);
  lines.length = 0;
  for (let n = 0; n < 500; n += 1) refuse(7);
  expect(withMessage(lines, /forbidden/)).toHaveLength(30);
  expect(withMessage(lines, /403/)).toMatchObject([{ level: 'warn', caller: 'user:7' }]);
  refuse(8);
  pass(61_000);
  refuse(7);
  expect(withMessage(lines, /forbidden/).slice(30)).toMatchObject([
    { caller: 'user:8' },
    { caller: 'user:7' },
  ]);
});

test('counts the 401 of a minute only', () => {
  const { lines, refuse, pass } = refusalsOf(401);
  for (let n = 0; n < 30; n += 1, pass(10_000)) refuse();
  expect(lines).toEqual([]);
  pass(60_000);
  for (let n = 0; n < 10; n += 1, pass(6_000)) refuse(undefined, `2001:db8::${n}`);
  expect(lines).toHaveLength(1);
});
