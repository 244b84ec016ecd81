import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { connect } from 'node:net';
import { endpoints, latencyLimits } from '@content-platform/contract';
import { sentSpans } from '@content-platform/chassis/testing/sent-spans.ts';
import { until } from '../test/support/wait.ts';
import { parseServerTiming } from './observe.ts';
import { startGateway, type TestGateway } from './testing/gateway.ts';
import { machineToken, mint } from './testing/tokens.ts';
import { sayOk, startUpstream, type RecordingUpstream } from './testing/upstream.ts';

/** So much that a quick request is none on a busy machine either. */
const slowRequestMs = 1_000;
let upstream: RecordingUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startUpstream();
  const services = { auth: upstream.url, 'content-cache': upstream.url };
  gateway = await startGateway({ services, slowRequestMs });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.answer = sayOk;
  gateway.slow.splice(0);
  gateway.log.splice(0);
});

const ask = (path: string, token = mint()) =>
  fetch(gateway.origin + path, { headers: { Authorization: `Bearer ${token}`, 'X-Request-Id': 'slow-1' } });

test.each([
  ['db;dur=12.3;desc="2", cache;desc="hit"', { databaseMs: 12.3, databaseCalls: 2, cache: 'hit' }],
  ['db;dur=0.0;desc="0"', { databaseMs: 0, databaseCalls: 0, cache: undefined }],
  ['cache;desc="bypass"', { databaseMs: undefined, databaseCalls: undefined, cache: 'bypass' }],
  ['total;dur=1', { databaseMs: undefined, databaseCalls: undefined, cache: undefined }],
  [undefined, { databaseMs: undefined, databaseCalls: undefined, cache: undefined }],
])('Server-Timing %s', (value, expected) => {
  expect(parseServerTiming(value)).toEqual(expected);
});

test("a slow request is one row: who asked, which template, the service's share", async () => {
  upstream.answer = (_request, response) => {
    response.setHeader('Server-Timing', 'db;dur=170.5;desc="3", cache;desc="miss"');
    setTimeout(() => response.end('{}'), slowRequestMs + 200);
  };
  await (await ask('/api/content/webform/12?view=full')).text();
  await (await ask('/api/content/webform/13', machineToken('cms'))).text();
  await until('both rows are there', () => gateway.slow.length === 2);
  const [person, machine] = gateway.slow;
  expect(person).toMatchObject({
    method: 'GET',
    route: '/api/content/:model/:id',
    status: 200,
    requestId: 'slow-1',
    userId: '7',
    cache: 'miss',
    databaseCalls: 3,
    databaseMs: 170.5,
  });
  expect(person!.ms).toBeGreaterThan(slowRequestMs);
  expect(machine!.userId).toBe('cms');
  const metrics = await gateway.metrics.registry.metrics();
  expect(metrics).toContain('slow_requests_total{route="/api/content/:model/:id"} 2');
  expect(metrics).toContain('slow_requests_total{route="/api/letters"} 0');
});

test('a quick one is none, nor is the time in which a refused body is drained', async () => {
  await (await ask('/api/me')).text();
  const socket = connect(Number(new URL(gateway.origin).port), '127.0.0.1');
  const head = 'POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
  socket.write(`${head}Content-Length: 99999\r\n\r\n`);
  await once(socket, 'data');
  await new Promise((resolve) => setTimeout(resolve, slowRequestMs + 300));
  socket.destroy();
  await until('the request has ended', () => gateway.log.join('').includes('"status":413'));
  expect(gateway.slow).toEqual([]);
});

test('durations are observed under templates only, and are there from the start', async () => {
  await (await ask('/api/content/webform/12')).text();
  await (await ask('/api/nothing/12')).text();
  await fetch(`${gateway.origin}/api/me`, { method: 'PROPFIND' });
  const last = /count\{service="gateway",method="other",route="unknown",status="405"\} 1/;
  const metrics = await until('the last one is observed', async () => {
    const text = await gateway.metrics.registry.metrics();
    return last.test(text) && text;
  });
  const routes = new Set(
    [...metrics.matchAll(/http_request_duration_seconds_count\{.*?route="([^"]*)"/g)].map(
      (match) => match[1],
    ),
  );
  expect(routes).toContain('/api/admin/cache/clear-pattern');
  expect(routes).toContain('unknown');
  expect([...routes].filter((route) => /nothing|12/.test(route!))).toEqual([]);
});

test('the latency limit of each route is a metric: alerts compare with it', async () => {
  const metrics = await gateway.metrics.registry.metrics();
  for (const { method, path, latencyClass = 'usual' } of endpoints) {
    const labels = `method="${method}",route="${path}",class="${latencyClass}"`;
    expect(metrics).toContain(`latency_limit_seconds{${labels}} ${latencyLimits[latencyClass]}`);
  }
});

test('log lines hold no query, no body, no token; a 5xx is told at info', async () => {
  const token = mint();
  upstream.answer = (_request, response) => response.writeHead(500, { 'X-Request-Id': 'slow-1' }).end('{}');
  await (await ask('/api/me?secret=hush', token)).text();
  const line = await until('it is logged', () => gateway.log.find((entry) => entry.includes('"status":500')));
  expect(JSON.parse(line)).toMatchObject({
    level: 'info',
    route: '/api/me',
    method: 'GET',
    request_id: 'slow-1',
  });
  expect(gateway.log.join('')).not.toMatch(/hush|eyJ/);
});

test('the trace of a slow request is sent', async () => {
  const sent = sentSpans();
  const strict = await startGateway({ services: { auth: upstream.url }, slowRequestMs: 20 });
  upstream.answer = (_request, response) => void setTimeout(() => response.end('{}'), 50);
  try {
    await (await fetch(`${strict.origin}/.well-known/jwks.json`)).text();
    await until('its row is there', () => strict.slow.length === 1);
    expect(new Set(sent.map(({ traceId }) => traceId))).toEqual(new Set([strict.slow[0]!.traceId]));
  } finally {
    await strict.close();
  }
});
