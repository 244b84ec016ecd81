import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server as HttpServer, type ServerResponse } from 'node:http';
import {
  connect,
  createServer as createTcpServer,
  type AddressInfo,
  type Server,
  type Socket,
} from 'node:net';
import { until } from '../test/support/wait.ts';
import { sendRaw } from '../test/support/raw-http.ts';
import { startDeafServer } from './testing/deaf-server.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from './testing/gateway.ts';
import { sayOk, startUpstream, type RecordingUpstream } from './testing/upstream.ts';

let upstream: RecordingUpstream;
let gateway: TestGateway;
const closers: (() => unknown)[] = [];

async function startIn(url: string, options: Partial<TestGatewayOptions> = {}): Promise<void> {
  gateway = await startGateway({ services: { auth: url, 'content-cache': upstream.url }, ...options });
  closers.push(() => gateway.close());
}
beforeEach(async () => {
  upstream = await startUpstream();
  closers.push(() => upstream.close());
});
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

const get = (init: RequestInit = {}) => fetch(`${gateway.origin}/.well-known/jwks.json`, init);
const post = (init: RequestInit = {}) =>
  fetch(`${gateway.origin}/api/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"a":1}',
    ...init,
  });

async function errorOf(response: Response) {
  const body = (await response.json()) as { error: string; request_id: string };
  expect(response.headers.get('x-request-id')).toBe(body.request_id);
  return [response.status, body.error];
}

async function upstreamErrors(service = 'auth') {
  const { values } = await gateway.metrics.upstreamErrors.get();
  return Object.fromEntries(
    values
      .filter(({ labels, value }) => labels.service === service && value > 0)
      .map(({ labels, value }) => [labels.reason, value]),
  );
}

/** A server that does with each connection what `accept` does. */
async function startTcp(accept: (socket: Socket, count: number) => void, port = 0) {
  let count = 0;
  const sockets = new Set<Socket>();
  const server: Server = createTcpServer((socket) => {
    socket.on('error', () => undefined);
    sockets.add(socket);
    accept(socket, (count += 1));
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => count };
}

const head = (length: number, more = '') => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n${more}\r\n`;

describe('a service that is away', () => {
  test('503 with Retry-After, soon, and the other services are unharmed', async () => {
    const { url, close } = await startUpstream();
    await close();
    await startIn(url);
    const start = performance.now();
    const response = await post();
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await errorOf(response)).toEqual([503, 'service_unavailable']);
    expect(performance.now() - start).toBeLessThan(3_000);
    expect(await upstreamErrors()).toEqual({ connect: 1 });
    expect(await upstreamErrors('content-cache')).toEqual({});
    expect(gateway.log.join('')).toContain('ECONNREFUSED');
  });

  test('a request is sent, once, when the second attempt to connect works', async () => {
    const { url, close } = await startUpstream();
    await close();
    await startIn(url);
    const answer = post();
    // Between the refused attempt and the next one.
    const late = await new Promise<RecordingUpstream>((resolve) =>
      setTimeout(() => void startUpstream(Number(new URL(url).port)).then(resolve), 30),
    );
    closers.push(() => late.close());
    expect((await answer).status).toBe(200);
    expect(late.received).toMatchObject([{ method: 'POST', body: '{"a":1}' }]);
    expect(await upstreamErrors()).toEqual({});
  });

  test('one that does not even accept connections costs both attempts their time, not more', async () => {
    const deaf = await startDeafServer();
    closers.push(deaf.close);
    await startIn(deaf.url, { timeouts: { connect: 150, connectTotal: 400 } });
    const start = performance.now();
    expect(await errorOf(await post())).toEqual([503, 'service_unavailable']);
    const ms = performance.now() - start;
    expect(ms).toBeGreaterThan(300);
    expect(ms).toBeLessThan(3_000);
    expect(await upstreamErrors()).toEqual({ connect: 1 });
  });
});

describe('a service that answers badly', () => {
  test('late: 504, and the request to it has ended', async () => {
    let ended = 0;
    const { url } = await startTcp((socket) => socket.resume().on('close', () => (ended += 1)));
    await startIn(url, { timeouts: { response: 300 } });
    expect(await errorOf(await post())).toEqual([504, 'gateway_timeout']);
    await until('the connection has ended', () => ended === 1);
    expect(await upstreamErrors()).toEqual({ timeout: 1 });
  });

  test('not at all: 502', async () => {
    const { url } = await startTcp((socket) => socket.once('data', () => socket.destroy()));
    await startIn(url);
    expect(await errorOf(await post())).toEqual([502, 'bad_gateway']);
    expect(await upstreamErrors()).toEqual({ broken: 1 });
  });

  test.each([
    ['noise', 'not HTTP at all\r\n\r\n'],
    ['an impossible status', 'HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n'],
    [
      'a tunnel nobody asked for',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
    ],
    ['half a head', 'HTTP/1.1 200 OK\r\nContent-Le'],
  ])('%s: 502, and the gateway lives', async (_, reply) => {
    const { url } = await startTcp((socket) => socket.once('data', () => socket.end(reply)));
    await startIn(url);
    expect(await errorOf(await get())).toEqual([502, 'bad_gateway']);
    expect((await fetch(`${gateway.origin}/api/nothing`)).status).toBe(404);
  });

  test.each([
    ['with a length', head(1000)],
    ['chunked', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n'],
  ])('half a body %s: the client sees that it is half', async (_, start) => {
    const { url } = await startTcp((socket) =>
      socket.once('data', () => {
        socket.write(`${start}half`);
        setTimeout(() => socket.destroy(), 50);
      }),
    );
    await startIn(url);
    const response = await get();
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow('terminated');
    expect(await upstreamErrors()).toEqual({ broken: 1 });
    expect(gateway.log.join('')).toContain('a reply broke off');
  });

  test('a body that stops coming ends the client’s connection', async () => {
    const { url } = await startTcp((socket) => socket.once('data', () => socket.write(`${head(1000)}half`)));
    await startIn(url, { timeouts: { response: 200 } });
    await expect((await get()).text()).rejects.toThrow('terminated');
    expect(await upstreamErrors()).toEqual({ timeout: 1 });
  });
});

describe('kept connections', () => {
  test('many requests share them', async () => {
    await startIn(upstream.url);
    for (let index = 0; index < 20; index += 1) await (await get()).text();
    expect(upstream.connections).toBe(1);
  });

  /** Answers each connection's first request well and closes it at the second, as a service that is just stopping. */
  const closesAtSecond = (socket: Socket) => {
    let requests = 0;
    socket.on('data', () => {
      requests += 1;
      if (requests === 1) socket.write(`${head(2)}{}`);
      else socket.destroy();
    });
  };

  test('one that turns out dead fails no GET', async () => {
    const { url, connections } = await startTcp(closesAtSecond);
    await startIn(url);
    for (let index = 0; index < 6; index += 1) expect([index, (await get()).status]).toEqual([index, 200]);
    expect(connections()).toBe(6);
    expect(await upstreamErrors()).toEqual({});
  });

  test('nor does a whole pool of them, and it is asked again once only', async () => {
    let requests = 0;
    const first: Socket[] = [];
    const { url, connections } = await startTcp((socket, count) => {
      socket.on('data', () => (requests += 1));
      if (count > 5) return closesAtSecond(socket);
      socket.once('data', () => {
        first.push(socket);
        if (first.length === 5) for (const each of first) each.write(`${head(2)}{}`);
        socket.once('data', () => socket.destroy());
      });
    });
    await startIn(url);
    await Promise.all(Array.from({ length: 5 }, async () => (await get()).text()));
    expect(connections()).toBe(5);
    expect((await get()).status).toBe(200);
    expect([connections(), requests]).toEqual([6, 7]);
  });

  test('a POST that met one is not sent again: nobody knows whether it was done', async () => {
    const { url, connections } = await startTcp(closesAtSecond);
    await startIn(url);
    await (await get()).text();
    expect(await errorOf(await post())).toEqual([502, 'bad_gateway']);
    expect(connections()).toBe(1);
  });

  test('a new connection that breaks off is not tried again', async () => {
    const { url, connections } = await startTcp((socket) => socket.once('data', () => socket.destroy()));
    await startIn(url);
    expect((await get()).status).toBe(502);
    expect(connections()).toBe(1);
  });

  test('idle ones are closed by us before a Node server would', async () => {
    let closed = false;
    const server: HttpServer = createServer((_request, response) => response.end('{}')).listen(
      0,
      '127.0.0.1',
    );
    server.on('connection', (socket) => socket.on('end', () => (closed = true)));
    await once(server, 'listening');
    closers.push(() => server.close());
    await startIn(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await (await get()).text();
    const start = performance.now();
    await until('we have closed it', () => closed, 10_000);
    expect(performance.now() - start).toBeLessThan(server.keepAliveTimeout);
  });
});

test('a client that hangs up ends the request at the service', async () => {
  let ended = false;
  upstream.answer = (_request, response) => void response.on('close', () => (ended = true));
  await startIn(upstream.url);
  const hangUp = new AbortController();
  const answer = get({ signal: hangUp.signal });
  await until('the request has arrived', () => upstream.received.length === 1);
  hangUp.abort();
  await expect(answer).rejects.toThrow();
  await until('it has ended', () => ended);
  expect(await upstreamErrors()).toEqual({});
  await until('it is logged', () => gateway.log.join('').includes('"status":499'));
});

test('a client that hangs up in the middle of a reply ends it, too', async () => {
  let ended = false;
  upstream.answer = (_request, response) => {
    response.on('close', () => (ended = true));
    response.write('x'.repeat(1000));
  };
  await startIn(upstream.url);
  const socket = connect(Number(new URL(gateway.origin).port), '127.0.0.1');
  socket.write('GET /.well-known/jwks.json HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'data');
  socket.destroy();
  await until('it has ended', () => ended);
  expect(await upstreamErrors()).toEqual({});
});

test('clients that are gone before their request is sent take up no room', async () => {
  let checking = 0;
  const verify = async () => {
    checking += 1;
    await new Promise((resolve) => setTimeout(resolve, 300));
    return { kind: 'user' as const, id: 1, sessionId: 's', scopes: new Set<never>() };
  };
  await startIn(upstream.url, { tokens: { verify } });
  const sockets = Array.from({ length: 30 }, () =>
    connect(Number(new URL(gateway.origin).port), '127.0.0.1'),
  );
  const request = 'GET /api/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n';
  for (const socket of sockets) socket.write(request.repeat(20));
  await until('more tokens than there is room are being checked', () => checking === 600);
  for (const socket of sockets) socket.destroy();
  await until(
    'all have been noticed',
    () => gateway.log.filter((line) => line.includes('"status":499')).length === 600,
  );
  const answered = await fetch(`${gateway.origin}/api/me`, { headers: { Authorization: 'Bearer x' } });
  expect(answered.status).toBe(200);
  expect(upstream.received).toHaveLength(1);
});

test('a reply goes through as it is: status, body, ETag, 304 and 204', async () => {
  await startIn(upstream.url);
  upstream.answer = (_request, response) => response.writeHead(201, { ETag: '"x"' }).end('é'.repeat(100_000));
  const created = await get();
  expect([created.status, created.headers.get('etag'), (await created.text()).length]).toEqual([
    201,
    '"x"',
    100_000,
  ]);
  for (const status of [304, 204]) {
    upstream.answer = (_request, response) => response.writeHead(status, { ETag: '"x"' }).end();
    const response = await get();
    expect([response.status, await response.text()]).toEqual([status, '']);
  }
});

test('HTTP/1.0 and Connection: close get their reply and the end of the connection', async () => {
  await startIn(upstream.url);
  for (const [version, more] of [
    ['1.0', ''],
    ['1.1', 'Connection: close\r\n'],
  ]) {
    const raw = await sendRaw(
      gateway.origin,
      `GET /.well-known/jwks.json HTTP/${version}\r\nHost: x\r\n${more}\r\n`,
    );
    expect(raw).toMatch(/^HTTP\/1\.1 200/);
    expect(raw).toMatch(/^Connection: close\r$/m);
    expect(raw.endsWith('{"ok":true}')).toBe(true);
  }
});

test('more requests than there may be at once wait for their turn', async () => {
  const held: ServerResponse[] = [];
  upstream.answer = (_request, response) => void held.push(response);
  await startIn(upstream.url);
  // Sent ahead on a few connections: all are asked for at once.
  let raw = '';
  const sockets = Array.from({ length: 40 }, () =>
    connect(Number(new URL(gateway.origin).port), '127.0.0.1'),
  );
  for (const socket of sockets) {
    socket.setEncoding('latin1').on('data', (chunk: string) => (raw += chunk));
    socket.write('GET /.well-known/jwks.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20));
  }
  await until('as many as there may be are at the service', () => held.length === 512);
  upstream.answer = sayOk;
  for (const response of held) response.end('{}');
  const statuses = () => raw.match(/HTTP\/1\.1 \d+/g) ?? [];
  await until('all are answered', () => statuses().length === 800);
  for (const socket of sockets) socket.destroy();
  expect(new Set(statuses())).toEqual(new Set(['HTTP/1.1 200']));
  expect(upstream.connections).toBe(512);
});

test('who waits too long for a turn is told so', async () => {
  const endless: ServerResponse[] = [];
  upstream.answer = (_request, response) => void endless.push(response);
  const timer = setInterval(() => endless.forEach((response) => response.write('more')), 100);
  closers.push(() => clearInterval(timer));
  await startIn(upstream.url, { timeouts: { response: 1_000 } });
  const sockets = Array.from({ length: 30 }, () =>
    connect(Number(new URL(gateway.origin).port), '127.0.0.1'),
  );
  for (const socket of sockets) {
    socket.write('GET /.well-known/jwks.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20));
  }
  await until('there is no room', () => endless.length === 512);
  expect(await errorOf(await get())).toEqual([503, 'service_unavailable']);
  expect((await upstreamErrors())['busy']).toBeGreaterThan(0);
  for (const socket of sockets) socket.destroy();
});
