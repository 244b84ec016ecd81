import { afterEach, expect, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../test/support/wait.ts';
import { usualLateMs } from './load-shedding.ts';
import { errorOf, rawGet, setScene } from './testing/scene.ts';
import { sayOk } from './testing/upstream.ts';

const scene = setScene();
const page = 'https://app.example.com';
const held: ServerResponse[] = [];
let busy: NodeJS.Timeout | undefined;
afterEach(() => clearInterval(busy));

/** The gateway is in this process: its event loop is late whenever ours is. */
function spin(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

function beBusy(): void {
  busy = setInterval(() => spin(60), 1);
}

/** As late as that, since others have the processor. */
function beKeptWaiting(): void {
  const nobody = new Int32Array(new SharedArrayBuffer(4));
  busy = setInterval(() => Atomics.wait(nobody, 0, 0, 60), 1);
}

const shed = async () => (await scene.gateway.metrics.requestsShed.get()).values[0]!.value;

/** A gateway with so many requests under way that nobody answers: a whole number of twenties. */
async function start(count: number, mayBeLateMs = usualLateMs): Promise<void> {
  held.splice(0);
  scene.upstream.answer = (_request, response) => void held.push(response);
  await scene.start(scene.upstream.url, { mayBeLateMs, corsOrigins: [page] });
  const sockets = Array.from({ length: count / 20 }, () => scene.connect());
  scene.closeLater(() => sockets.forEach((socket) => socket.destroy()));
  for (const socket of sockets) socket.resume().write(rawGet().repeat(20));
  // On a busy machine some are refused already.
  await until('all are under way', async () => held.length + (await shed()) === count);
  scene.upstream.answer = sayOk;
}

async function expectNobodyRefused(): Promise<void> {
  for (let count = 0; count < 20; count += 1) expect((await scene.get()).status).toBe(200);
  expect(await shed()).toBe(0);
}

/** One that looks on time between two that do not lets some in. */
async function untilRefused(send: () => Promise<Response> = scene.get): Promise<Response> {
  return until('one is refused', async () => {
    const response = await send();
    return response.status === 503 && response;
  });
}

test('who is late refuses at once what is more than it has time for, and says when to come again', async () => {
  await start(100);
  beBusy();
  const refused = await untilRefused();
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(refused.headers.get('cache-control')).toBe('no-store');
  expect(await errorOf(refused)).toEqual([503, 'overloaded']);
  expect(await shed()).toBeGreaterThan(0);
  // Nothing of it came through.
  let received = 0;
  const body = 'x'.repeat(200_000);
  const headers = { 'Content-Type': 'application/json' };
  const post = await untilRefused(() => {
    received = scene.upstream.received.length;
    return fetch(`${scene.gateway.origin}/api/login`, { method: 'POST', headers, body });
  });
  expect(await errorOf(post)).toEqual([503, 'overloaded']);
  expect(scene.upstream.received).toHaveLength(received);
});

test('a page that may read replies can read that, too', async () => {
  await start(100);
  beBusy();
  const { status, headers } = await untilRefused(() => scene.get({ headers: { Origin: page } }));
  expect([status, headers.get('access-control-allow-origin')]).toEqual([503, page]);
  expect(headers.get('access-control-expose-headers')).toContain('Retry-After');
  expect(headers.get('vary')).toBe('Origin');
});

test('health is answered meanwhile', async () => {
  await start(100);
  beBusy();
  await untilRefused();
  expect((await fetch(`${scene.gateway.origin}/health`)).status).toBe(200);
});

test('nor do clients that send slowly, or take nothing, have others refused', async () => {
  await start(0);
  const sockets = Array.from({ length: 200 }, () => scene.connect());
  scene.closeLater(() => sockets.forEach((socket) => socket.destroy()));
  const head =
    'POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{';
  const large = 'GET /api/docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3);
  sockets.forEach((socket, index) => socket.pause().write(index % 2 === 0 ? head : large));
  await until('all are connected', () => sockets.every(({ connecting }) => !connecting));
  expect((await scene.get()).status).toBe(200);
  beBusy();
  await expectNobodyRefused();
});

test('nor do those that are being answered and take nothing of it', async () => {
  const unended: ServerResponse[] = [];
  await start(0);
  scene.upstream.answer = (_request, response) => {
    response.write('{');
    unended.push(response);
  };
  const sockets = Array.from({ length: 200 }, () => scene.connect());
  scene.closeLater(() => sockets.forEach((socket) => socket.destroy()));
  for (const socket of sockets) socket.pause().write(rawGet());
  await until('all are at the service', () => unended.length === 200);
  scene.upstream.answer = sayOk;
  expect((await scene.get()).status).toBe(200);
  beBusy();
  await expectNobodyRefused();
});

test('when it is late no more, all are let in again', async () => {
  await start(100);
  beBusy();
  await untilRefused();
  clearInterval(busy);
  await until('it is let in', async () => (await scene.get()).status === 200, 5_000);
});

test('a malformed head ends its connection also then', async () => {
  await start(100);
  beBusy();
  await untilRefused();
  const socket = scene.connect();
  let raw = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (raw += chunk));
  socket.write(rawGet('Host: y\r\n') + rawGet());
  await until('it is closed', () => socket.destroyed || socket.readableEnded);
  expect(raw.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400']);
});

test('60 at a time are let in however late it is', async () => {
  await start(60);
  beBusy();
  await expectNobodyRefused();
});

test('who is late since other processes have the processor takes on more', async () => {
  await start(200);
  beKeptWaiting();
  await expectNobodyRefused();
});

test('but not without end', async () => {
  await start(300);
  beKeptWaiting();
  await untilRefused();
});

/** So late only a loop is that is held up on purpose, even on a busy machine. */
const generousMs = 200;

test('many requests that only wait for a service are no overload', async () => {
  await start(200, generousMs);
  await expectNobodyRefused();
});

test('nor are stalls, whenever they come', async () => {
  await start(100, generousMs);
  for (let pauseMs = 95; pauseMs < 120; pauseMs += 1) {
    await sleep(pauseMs);
    spin(2 * generousMs);
    expect((await scene.get()).status).toBe(200);
  }
});
