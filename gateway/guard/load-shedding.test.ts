import { beforeEach, expect, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { until } from '../../test/support/wait.ts';
import { errorOf, rawGet, useTestGateway } from '../testing/use-test-gateway.ts';
import { sayOk } from '../testing/upstream.ts';

const fixture = useTestGateway();
const page = 'https://app.example.com';
const held: ServerResponse[] = [];
const tickMs = 10;

/** Load shedding reads `now` once in each of its ticks: the event loop seems `lateMs` late in each of them. */
const clock = {
  lateMs: 0,
  /** The part of a core that the gateway's thread seems to have. */
  cpuShare: 1,
  /** Every so many ticks the event loop seems to stall for 400 ms. */
  stallEvery: Infinity,
  ticks: 0,
  passed: 0,
  used: 0,
  now() {
    clock.ticks += 1;
    const ms = tickMs + (clock.ticks % clock.stallEvery === 0 ? 400 : clock.lateMs);
    clock.passed += ms;
    clock.used += ms * clock.cpuShare;
    return clock.passed;
  },
  cpu: () => clock.used,
};
beforeEach(() => void Object.assign(clock, { lateMs: 0, cpuShare: 1, stallEvery: Infinity }));

async function untilTicks(count: number): Promise<void> {
  const from = clock.ticks;
  await until(`${count} ticks have passed`, () => clock.ticks >= from + count);
}

/** The gateway itself keeps its core busy. */
function overload(): void {
  clock.lateMs = 60;
}

/** Other processes have the core: as late, with next to no processor time. */
function starve(): void {
  Object.assign(clock, { lateMs: 60, cpuShare: 0.05 });
}

const shed = async () => (await fixture.gateway.metrics.requestsShed.get()).values[0]!.value;

/** Starts a gateway at which `count` requests, a multiple of 20, wait for a service that does not answer. */
async function start(count: number): Promise<void> {
  held.splice(0);
  fixture.upstream.answer = (_request, response) => void held.push(response);
  await fixture.start(fixture.upstream.url, { clock, corsOrigins: [page] });
  const sockets = Array.from({ length: count / 20 }, () => fixture.connect());
  fixture.closeLater(() => sockets.forEach((socket) => socket.destroy()));
  for (const socket of sockets) socket.resume().write(rawGet().repeat(20));
  await until('all are under way', () => held.length === count);
  fixture.upstream.answer = sayOk;
}

async function expectNoRefusal(): Promise<void> {
  await untilTicks(100);
  for (let count = 0; count < 20; count += 1) expect((await fixture.get()).status).toBe(200);
  expect(await shed()).toBe(0);
}

async function untilRefused(send: () => Promise<Response> = fixture.get): Promise<Response> {
  return until('one is refused', async () => {
    const response = await send();
    return response.status === 503 && response;
  });
}

test('refuses requests with Retry-After while its event loop is late, and sends nothing of them on', async () => {
  await start(100);
  overload();
  const refused = await untilRefused();
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(refused.headers.get('cache-control')).toBe('no-store');
  expect(await errorOf(refused)).toEqual([503, 'overloaded']);
  expect(await shed()).toBeGreaterThan(0);
  let received = 0;
  const body = 'x'.repeat(200_000);
  const headers = { 'Content-Type': 'application/json' };
  const post = await untilRefused(() => {
    received = fixture.upstream.received.length;
    return fetch(`${fixture.gateway.origin}/api/login`, { method: 'POST', headers, body });
  });
  expect(await errorOf(post)).toEqual([503, 'overloaded']);
  expect(fixture.upstream.received).toHaveLength(received);
});

test('a page of an allowed origin can read the refusal', async () => {
  await start(100);
  overload();
  const { status, headers } = await untilRefused(() => fixture.get({ headers: { Origin: page } }));
  expect([status, headers.get('access-control-allow-origin')]).toEqual([503, page]);
  expect(headers.get('access-control-expose-headers')).toContain('Retry-After');
  expect(headers.get('vary')).toBe('Origin');
});

test('answers health meanwhile', async () => {
  await start(100);
  overload();
  await untilRefused();
  expect((await fetch(`${fixture.gateway.origin}/health`)).status).toBe(200);
});

test('slow senders and slow readers cause no refusals', async () => {
  await start(0);
  const sockets = Array.from({ length: 200 }, () => fixture.connect());
  fixture.closeLater(() => sockets.forEach((socket) => socket.destroy()));
  const head =
    'POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{';
  const large = 'GET /api/docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3);
  sockets.forEach((socket, index) => socket.pause().write(index % 2 === 0 ? head : large));
  await until('all are connected', () => sockets.every(({ connecting }) => !connecting));
  expect((await fixture.get()).status).toBe(200);
  overload();
  await expectNoRefusal();
});

test('clients that do not read a reply that has begun cause no refusals', async () => {
  const unended: ServerResponse[] = [];
  await start(0);
  fixture.upstream.answer = (_request, response) => {
    response.write('{');
    unended.push(response);
  };
  const sockets = Array.from({ length: 200 }, () => fixture.connect());
  fixture.closeLater(() => sockets.forEach((socket) => socket.destroy()));
  for (const socket of sockets) socket.pause().write(rawGet());
  await until('all are at the service', () => unended.length === 200);
  fixture.upstream.answer = sayOk;
  expect((await fixture.get()).status).toBe(200);
  overload();
  await expectNoRefusal();
});

test('accepts requests again once the event loop is on time', async () => {
  await start(100);
  overload();
  await untilRefused();
  clock.lateMs = 0;
  await until('a request is accepted', async () => (await fixture.get()).status === 200);
});

test('closes the connection after a malformed head meanwhile', async () => {
  await start(100);
  overload();
  await untilRefused();
  const socket = fixture.connect();
  let raw = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (raw += chunk));
  socket.write(rawGet('Host: y\r\n') + rawGet());
  await until('it is closed', () => socket.destroyed || socket.readableEnded);
  expect(raw.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400']);
});

test('accepts 60 requests at a time however late the event loop is', async () => {
  await start(60);
  overload();
  await expectNoRefusal();
});

test('accepts 200 requests at a time while other processes have the core', async () => {
  await start(200);
  starve();
  await expectNoRefusal();
});

test('refuses the rest of 300 while other processes have the core', async () => {
  await start(300);
  starve();
  await untilRefused();
});

test('many requests that only wait for a service are no overload', async () => {
  await start(200);
  await expectNoRefusal();
});

test('single stalls cause no refusals', async () => {
  await start(100);
  for (clock.stallEvery = 3; clock.stallEvery < 20; clock.stallEvery += 1) {
    await untilTicks(3 * clock.stallEvery);
    expect((await fixture.get()).status).toBe(200);
  }
  expect(await shed()).toBe(0);
});
