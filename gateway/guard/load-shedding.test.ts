import { beforeEach, expect, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { until } from '../../test/support/wait.ts';
import { errorOf, rawGet, useTestGateway } from '../testing/use-test-gateway.ts';
import { sayOk } from '../testing/upstream.ts';

const fixture = useTestGateway();
const page = 'https://app.example.com';
const held: ServerResponse[] = [];

/** Time passes for load shedding only when `tick` is called. */
let passedMs: number;
let usedMs: number;
let check: () => void;
const clock = {
  every(_ms: number, work: () => void) {
    check = work;
    return () => undefined;
  },
  now: () => passedMs,
  cpu: () => usedMs,
};
beforeEach(() => {
  passedMs = 0;
  usedMs = 0;
});

/** Simulates `count` checks of load shedding with the given lag and CPU share of the thread. */
function tick(count: number, { lateMs = 0, cpuShare = 1 } = {}): void {
  for (let index = 0; index < count; index += 1) {
    passedMs += 10 + lateMs;
    usedMs += (10 + lateMs) * cpuShare;
    check();
  }
}

/** Simulates a lag that the gateway's own work causes. */
const overload = () => tick(100, { lateMs: 60 });
/** Simulates the same lag while other processes use the core. */
const starve = () => tick(100, { lateMs: 60, cpuShare: 0.05 });

/** Starts a gateway at which `count` requests wait for a service that does not answer. */
async function start(count: number): Promise<void> {
  held.splice(0);
  fixture.upstream.answer = (_request, response) => void held.push(response);
  await fixture.start({ clock, corsOrigins: [page] });
  // 20 requests are pipelined on each connection.
  for (let sent = 0; sent < count; sent += 20) fixture.open(rawGet().repeat(20));
  await until('all requests are in progress', () => held.length === count);
  fixture.upstream.answer = sayOk;
}

async function expectNoRefusal(): Promise<void> {
  expect((await fixture.get()).status).toBe(200);
  expect((await fixture.gateway.metrics.requestsShed.get()).values[0]!.value).toBe(0);
}

test('refuses requests with Retry-After while the event loop lags, and forwards none', async () => {
  await start(100);
  overload();
  const refused = await fixture.get();
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(refused.headers.get('cache-control')).toBe('no-store');
  expect(await errorOf(refused)).toEqual([503, 'overloaded']);
  const body = 'x'.repeat(200_000);
  const headers = { 'Content-Type': 'application/json' };
  const post = await fixture.ask('/api/login', { method: 'POST', headers, body });
  expect(await errorOf(post)).toEqual([503, 'overloaded']);
  expect((await fixture.gateway.metrics.requestsShed.get()).values[0]!.value).toBe(2);
  expect(fixture.upstream.received).toHaveLength(100);
});

test('a page of an allowed origin can read the refusal', async () => {
  await start(100);
  overload();
  const { status, headers } = await fixture.get({ headers: { Origin: page } });
  expect([status, headers.get('access-control-allow-origin')]).toEqual([503, page]);
  expect(headers.get('access-control-expose-headers')).toContain('Retry-After');
  expect(headers.get('vary')).toBe('Origin');
});

test('answers /health while it sheds load', async () => {
  await start(100);
  overload();
  expect((await fixture.ask('/health')).status).toBe(200);
});

test('closes the connection after a malformed head while it sheds load', async () => {
  await start(100);
  overload();
  const raw = await fixture.send(rawGet('Host: y\r\n') + rawGet());
  expect(raw.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400']);
});

test('accepts requests again once the event loop is on time', async () => {
  await start(100);
  overload();
  expect((await fixture.get()).status).toBe(503);
  tick(100);
  expect((await fixture.get()).status).toBe(200);
});

test('slow senders and slow readers cause no refusals', async () => {
  await start(0);
  const head =
    'POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{';
  const large = 'GET /api/docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3);
  const sockets = Array.from({ length: 200 }, () => fixture.connect().pause());
  sockets.forEach((socket, index) => socket.write(index % 2 === 0 ? head : large));
  await until('all are connected', () => sockets.every(({ connecting }) => !connecting));
  expect((await fixture.get()).status).toBe(200);
  overload();
  await expectNoRefusal();
});

test('clients that do not read a reply that has begun cause no refusals', async () => {
  const unended: ServerResponse[] = [];
  fixture.upstream.answer = (_request, response) => {
    response.write('{');
    unended.push(response);
  };
  await fixture.start({ clock });
  for (let index = 0; index < 200; index += 1) fixture.connect().pause().write(rawGet());
  await until('all are at the service', () => unended.length === 200);
  fixture.upstream.answer = sayOk;
  expect((await fixture.get()).status).toBe(200);
  overload();
  await expectNoRefusal();
});

test.each([
  ['accepts 60 requests at a time however late the event loop is', 60, overload],
  ['accepts 200 requests at a time while other processes have the core', 200, starve],
  ['accepts many requests that only wait for a service', 200, () => tick(100)],
])('%s', async (_, count, pass) => {
  await start(count);
  pass();
  await expectNoRefusal();
});

test('refuses requests above the minimum limit while other processes use the core', async () => {
  await start(300);
  starve();
  expect((await fixture.get()).status).toBe(503);
});

test('single stalls cause no refusals', async () => {
  await start(100);
  for (let checks = 2; checks < 20; checks += 1) {
    for (let stall = 0; stall < 10; stall += 1) {
      tick(checks);
      tick(1, { lateMs: 390 });
    }
    await expectNoRefusal();
  }
});
