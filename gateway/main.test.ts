import { afterEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { freeRow } from '../test/support/ports.ts';
import { startAuthStub } from '../test/support/auth-stub.ts';
import { bareEnvironment } from '../test/support/processes.ts';
import { sendRaw, statusOf } from '../test/support/raw-http.ts';
import { until } from '../test/support/wait.ts';

const main = fileURLToPath(new URL('main.ts', import.meta.url));
const closers: (() => void)[] = [];
afterEach(() => closers.splice(0).forEach((close) => close()));

/** The gateway's process; unless `env` names something, nothing of what it talks to is there. */
async function start(env: Record<string, string> = {}) {
  const port = await freeRow(1);
  const child = spawn(process.execPath, [main], {
    env: {
      ...bareEnvironment,
      PORT: String(port),
      ...env,
    },
  });
  closers.push(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  const ended = once(child, 'close').then(([code]) => code as number);
  const origin = `http://127.0.0.1:${port}`;
  const internal = `http://127.0.0.1:${port + 1000}`;
  return { child, origin, internal, ended, output: () => output };
}

test('with nothing behind it, it starts and is not ready, says so, guards, and stops with 0', async () => {
  const { child, origin, internal, ended } = await start();
  const health = await until('it listens', () => fetch(`${origin}/health`));
  const ready = await fetch(`${internal}/health/ready`);
  expect(ready.status).toBe(503);
  const checks = { tokens: 'unavailable', redis: 'unavailable' };
  expect(await ready.json()).toEqual({ status: 'unavailable', checks });
  expect(await health.json()).toEqual({
    status: 'degraded',
    services: {
      auth: 'down',
      'content-cache': 'down',
      'media-upload': 'down',
      pulse: 'down',
      devices: 'down',
      letters: 'down',
    },
  });
  // The server's own errors are answered by the gateway, too.
  expect(statusOf(await sendRaw(origin, 'GET /health HTTP/1.1\r\n\r\n'))).toBe(400);
  expect(await sendRaw(origin, 'noise\r\n\r\n')).toContain('"error":"malformed_request"');
  const large = `GET /health HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(17_000)}\r\n\r\n`;
  expect(await sendRaw(origin, large)).toContain('"error":"headers_too_large"');
  const metrics = await (await fetch(`${internal}/metrics`)).text();
  for (const series of [
    'gateway_upstream_errors_total{service="content-cache",reason="connect"} 0',
    'rate_limited_total{route="/api/content/:model/:id"} 0',
    'slow_requests_total{route="/api/login"} 0',
    'http_request_duration_seconds_count{service="gateway",method="GET",route="/api/me",status="200"} 0',
  ]) {
    expect(metrics).toContain(series);
  }
  expect((await fetch(`${origin}/metrics`)).status).toBe(404);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('it is ready, and degraded, without Redis', async () => {
  const auth = await startAuthStub();
  closers.push(() => auth.close());
  const { internal } = await start({ AUTH_URL: auth.url, AUTH_INTERNAL_URL: auth.url });
  const ready = await until('it is ready', async () => {
    const response = await fetch(`${internal}/health/ready`);
    return response.ok && ((await response.json()) as unknown);
  });
  expect(ready).toEqual({ status: 'degraded', checks: { tokens: 'ok', redis: 'unavailable' } });
});

test('a wrong setting is one line and exit 1', async () => {
  const { ended, output } = await start({ TRUSTED_PROXIES: 'everyone' });
  expect(await ended).toBe(1);
  expect(output()).toBe(
    'gateway: TRUSTED_PROXIES must be networks such as 10.0.0.0/8, separated by commas, not "everyone"\n',
  );
});

test('told to stop, it waits for a reply that takes long, as an upload does', async () => {
  const asked = Promise.withResolvers<void>();
  const upstream = createServer((request, response) => {
    if (request.url !== '/.well-known/jwks.json') return void response.end();
    asked.resolve();
    // Longer than processes usually have.
    setTimeout(() => response.end('{"keys":[]}'), 13_500);
  });
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  closers.push(() => upstream.close());
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const { child, origin, ended } = await start({ AUTH_URL: url });
  await until('it listens', async () => (await fetch(`${origin}/health`)).status > 0);
  const reply = fetch(`${origin}/.well-known/jwks.json`);
  await asked.promise;
  child.kill('SIGTERM');
  expect((await reply).status).toBe(200);
  expect(await ended).toBe(0);
});
