import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { services } from '@content-platform/contract';
import { startAuthStub } from '../test/support/auth-stub.ts';
import { calledAfterEach } from '../test/support/called-after-each.ts';
import { startService } from '../test/support/programs.ts';
import { sendRaw, statusOf } from '../test/support/raw-http.ts';
import { until } from '../test/support/wait.ts';

const closers = calledAfterEach();

async function start(env: NodeJS.ProcessEnv = {}) {
  const started = await startService('gateway/main.ts', { env });
  closers.push(() => started.child.kill('SIGKILL'));
  return started;
}

test('without its dependencies, starts, is not ready, refuses requests, and exits with 0', async () => {
  const { child, origin, internal, ended } = await start();
  const health = await until('it listens', () => fetch(`${origin}/health`));
  const ready = await fetch(`${internal}/health/ready`);
  expect(ready.status).toBe(503);
  const checks = { tokens: 'unavailable', redis: 'unavailable' };
  expect(await ready.json()).toEqual({ status: 'unavailable', checks });
  const down = services.filter(({ name }) => name !== 'gateway').map(({ name }) => [name, 'down']);
  expect(await health.json()).toEqual({ status: 'degraded', services: Object.fromEntries(down) });
  // Errors of Node's server also get the error envelope.
  expect(statusOf(await sendRaw(origin, 'GET /health HTTP/1.1\r\n\r\n'))).toBe(400);
  const large = `GET /health HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(17_000)}\r\n\r\n`;
  expect(await sendRaw(origin, large)).toContain('"error":"headers_too_large"');
  const metrics = await (await fetch(`${internal}/metrics`)).text();
  for (const series of [
    'gateway_upstream_errors_total{service="content-cache",reason="connect"} 0',
    'rate_limited_total{route="/api/content/:model/:id"} 0',
    'slow_requests_total{route="/api/login"} 0',
    'http_request_duration_seconds_count{service="gateway",method="GET",route="/api/me",status="200"} 0',
    'http_request_duration_seconds_count{service="gateway",method="GET",route="/api/me",status="503"} 0',
  ])
    expect(metrics).toContain(series);
  expect((await fetch(`${origin}/metrics`)).status).toBe(404);
  // After SIGTERM it would serve for another 2.5 s.
  child.kill('SIGINT');
  expect(await ended).toMatchObject({ code: 0 });
});

test('is ready but degraded without Redis', async () => {
  const auth = await startAuthStub();
  closers.push(auth.close);
  const { internal } = await start({ AUTH_URL: auth.url, AUTH_INTERNAL_URL: auth.url });
  const ready = await until('it is ready', async () => {
    const response = await fetch(`${internal}/health/ready`);
    return response.ok && ((await response.json()) as unknown);
  });
  expect(ready).toEqual({ status: 'degraded', checks: { tokens: 'ok', redis: 'unavailable' } });
});

test('reads the client IP address from X-Forwarded-For of TRUSTED_PROXIES', async () => {
  const { origin, output } = await start({ TRUSTED_PROXIES: '127.0.0.1/32' });
  const health = await until('it listens', () => fetch(`${origin}/health`));
  expect(health.headers.get('keep-alive')).toBe('timeout=620');
  const [other] = (await once(get(`${origin}/health`, { localAddress: '127.0.0.2' }), 'response')) as [
    IncomingMessage,
  ];
  expect(other.resume().headers['keep-alive']).toBe('timeout=65');
  const init = { headers: { 'X-Forwarded-For': '203.0.113.7' } };
  for (let n = 0; n < 10; n += 1) expect((await fetch(`${origin}/api/me`, init)).status).toBe(401);
  await until('it is logged', () => output.stdout.includes('"address":"203.0.113.7"'));
});

test('reports a wrong setting in one line and exits with 1', async () => {
  const { ended } = await start({ TRUSTED_PROXIES: 'everyone' });
  expect(await ended).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'gateway: TRUSTED_PROXIES must be networks such as 10.0.0.0/8, separated by commas, not "everyone"\n',
  });
});
