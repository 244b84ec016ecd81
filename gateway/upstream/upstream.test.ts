import { describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { until } from '../../test/support/wait.ts';
import { errorOf, head, rawGet, useTestGateway } from '../testing/use-test-gateway.ts';
import { gracePeriodMs, timeouts } from '../timeouts.ts';

const fixture = useTestGateway();

describe('a failing service', () => {
  test('returns 504 for a late reply and ends the request to the service', async () => {
    let ended = 0;
    const { url } = await fixture.startTcp((socket) => socket.resume().on('close', () => (ended += 1)));
    await fixture.start({ services: { auth: url }, timeouts: { response: 300 } });
    expect(await errorOf(await fixture.post())).toEqual([504, 'gateway_timeout']);
    await until('the connection has ended', () => ended === 1);
    expect(await fixture.upstreamErrors()).toEqual({ timeout: 1 });
    expect(fixture.gateway.log.join('')).toContain('nothing arrived for 300 ms');
  });

  test.each(['get', 'post'] as const)('does not retry a new connection that breaks off: %s', async (send) => {
    const { url, connections } = await fixture.startTcp((socket) =>
      socket.once('data', () => socket.destroy()),
    );
    await fixture.start({ services: { auth: url } });
    expect(await errorOf(await fixture[send]())).toEqual([502, 'bad_gateway']);
    expect(await fixture.upstreamErrors()).toEqual({ broken: 1 });
    expect(connections()).toBe(1);
  });

  test.each([
    ['noise', 'not HTTP at all\r\n\r\n'],
    ['an impossible status', 'HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n'],
    [
      'a tunnel without a request',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
    ],
    [
      "the error of another program's server",
      'HTTP/1.1 500 Internal Server Error\r\nContent-Length: 16\r\n\r\n<h1>Oh, no</h1>\r\n',
    ],
    ['half a head', 'HTTP/1.1 200 OK\r\nContent-Le'],
  ])('returns 502 for %s and continues to run', async (_, reply) => {
    const { url } = await fixture.startTcp((socket) => socket.once('data', () => socket.end(reply)));
    await fixture.start({ services: { auth: url } });
    expect(await errorOf(await fixture.get())).toEqual([502, 'bad_gateway']);
    expect((await fixture.ask('/api/nothing')).status).toBe(404);
  });

  test.each([
    ['with a length', head(1000)],
    ['chunked', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n'],
  ])('half a body %s: the client detects that it is incomplete', async (_, start) => {
    let service: Socket | undefined;
    const { url } = await fixture.startTcp((socket) => {
      service = socket;
      socket.once('data', () => socket.write(`${start}half`));
    });
    await fixture.start({ services: { auth: url } });
    const response = await fixture.get();
    expect(response.status).toBe(200);
    service!.destroy();
    await expect(response.text()).rejects.toThrow('terminated');
    expect(await fixture.upstreamErrors()).toEqual({ broken: 1 });
    const line = /"upstream":"auth",.*"reply cut off; the client got an incomplete reply"/;
    expect(fixture.gateway.log.join('')).toMatch(line);
  });

  test('half a body behind an earlier reply: closes the connection', async () => {
    const { url } = await fixture.startTcp((socket) =>
      socket.once('data', (sent) => sent.includes('second') && socket.end(`${head(1000)}half`)),
    );
    await fixture.start({ services: { auth: url } });
    const { socket } = fixture.open(rawGet() + rawGet().replace('.json', '.json?second'));
    await once(socket, 'close');
  });

  test("closes the client's connection when the reply body stops", async () => {
    const { url } = await fixture.startTcp((socket) =>
      socket.once('data', () => socket.write(`${head(1000)}half`)),
    );
    await fixture.start({ services: { auth: url }, timeouts: { response: 3_000 } });
    await expect((await fixture.get()).text()).rejects.toThrow('terminated');
    expect(await fixture.upstreamErrors()).toEqual({ timeout: 1 });
  });
});

test('keeps a client connected for as long as the slowest reply may take', () => {
  expect(timeouts.idle).toBeGreaterThan(timeouts.response + timeouts.connectTotal + gracePeriodMs);
});

test('ends the request at the service when the client disconnects', async () => {
  let ended = false;
  fixture.upstream.answer = (_request, response) => void response.on('close', () => (ended = true));
  await fixture.start();
  const hangUp = new AbortController();
  const answer = fixture.get({ signal: hangUp.signal });
  await until('the request has arrived', () => fixture.upstream.received.length === 1);
  hangUp.abort();
  await expect(answer).rejects.toThrow();
  await until('it has ended', () => ended);
  expect(await fixture.upstreamErrors()).toEqual({});
  await until('it is logged', () => fixture.gateway.log.join('').includes('"status":499'));
});

test('ends the request at the service when the client disconnects during the reply', async () => {
  let ended = false;
  fixture.upstream.answer = (_request, response) => {
    response.on('close', () => (ended = true));
    response.write('x'.repeat(1000));
  };
  await fixture.start();
  const { socket } = fixture.open(rawGet());
  await once(socket, 'data');
  socket.destroy();
  await until('it has ended', () => ended);
  expect(await fixture.upstreamErrors()).toEqual({});
});

test('disconnects a client that does not read, and counts no service failure', async () => {
  let sent = 0;
  const chunks = function* () {
    for (; sent < 64; sent += 1) yield Buffer.alloc(1_000_000, 'x');
  };
  fixture.upstream.answer = (_request, response) => void Readable.from(chunks()).pipe(response);
  await fixture.start({ timeouts: { response: 3_000, idle: 4_500 } });
  fixture.connect().pause().write(rawGet());
  await until('its request has ended', () => fixture.gateway.log.join('').includes('"message":"request"'));
  // More than the buffers of the connections hold: the gateway must not keep the rest.
  expect(sent).toBeLessThan(64);
  expect(await fixture.upstreamErrors()).toEqual({});
});

test('sends the complete reply to a client that pauses', async () => {
  fixture.upstream.answer = (_request, response) => void response.end(Buffer.alloc(20_000_000, 'x'));
  await fixture.start({ timeouts: { response: 3_000, idle: 10_000 } });
  const socket = fixture.connect();
  let bytes = 0;
  socket.on('data', (chunk) => (bytes += chunk.length));
  socket.once('data', () => {
    socket.pause();
    setTimeout(() => socket.resume(), 3_500);
  });
  socket.write(rawGet('Connection: close\r\n'));
  await once(socket, 'close');
  expect(bytes).toBeGreaterThan(20_000_000);
  expect(await fixture.upstreamErrors()).toEqual({});
});

test('passes on status, body and ETag unchanged, also for 304 and 204', async () => {
  await fixture.start();
  fixture.upstream.answer = (_request, response) =>
    response.writeHead(201, { ETag: '"x"' }).end('é'.repeat(100_000));
  const created = await fixture.get();
  const seen = [created.status, created.headers.get('etag'), (await created.text()).length];
  expect(seen).toEqual([201, '"x"', 100_000]);
  for (const status of [304, 204]) {
    fixture.upstream.answer = (_request, response) => response.writeHead(status, { ETag: '"x"' }).end();
    const response = await fixture.get();
    expect([response.status, await response.text()]).toEqual([status, '']);
  }
});

test('replies to HTTP/1.0 and Connection: close, then closes the connection', async () => {
  await fixture.start();
  for (const [version, more] of [
    ['1.0', ''],
    ['1.1', 'Connection: close\r\n'],
  ]) {
    const raw = await fixture.send(rawGet(more, version));
    expect(raw).toMatch(/^HTTP\/1\.1 200 [^]*^Connection: close\r$[^]*\{"ok":true\}$/m);
  }
});
