import { describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { until } from '../test/support/wait.ts';
import { startDeafServer } from './testing/deaf-server.ts';
import { errorOf, head, setScene } from './testing/scene.ts';
import { startUpstream, type RecordingUpstream } from './testing/upstream.ts';

const scene = setScene();

describe('a service that is away', () => {
  test('503 with Retry-After, soon, and the other services are unharmed', async () => {
    const { url, close } = await startUpstream();
    await close();
    await scene.start(url);
    const start = performance.now();
    const response = await scene.post();
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await errorOf(response)).toEqual([503, 'service_unavailable']);
    expect(performance.now() - start).toBeLessThan(3_000);
    expect(await scene.upstreamErrors()).toEqual({ connect: 1 });
    expect(await scene.upstreamErrors('content-cache')).toEqual({});
    expect(scene.gateway.log.join('')).toContain('ECONNREFUSED');
  });

  test('a request is sent, once, when the second attempt to connect works', async () => {
    const { url, close } = await startUpstream();
    await close();
    await scene.start(url);
    const answer = scene.post();
    // Between the refused attempt and the next one.
    const late = await new Promise<RecordingUpstream>((resolve) =>
      setTimeout(() => void startUpstream(Number(new URL(url).port)).then(resolve), 30),
    );
    scene.closeLater(() => late.close());
    expect((await answer).status).toBe(200);
    expect(late.received).toMatchObject([{ method: 'POST', body: '{"a":1}' }]);
    expect(await scene.upstreamErrors()).toEqual({});
  });

  test('one that does not even accept connections costs both attempts their time, not more', async () => {
    const deaf = await startDeafServer();
    scene.closeLater(deaf.close);
    await scene.start(deaf.url, { timeouts: { connect: 150, connectTotal: 400 } });
    const start = performance.now();
    expect(await errorOf(await scene.post())).toEqual([503, 'service_unavailable']);
    const ms = performance.now() - start;
    expect(ms).toBeGreaterThan(300);
    expect(ms).toBeLessThan(3_000);
    expect(await scene.upstreamErrors()).toEqual({ connect: 1 });
  });
});

describe('kept connections', () => {
  test('many requests share them', async () => {
    await scene.start(scene.upstream.url);
    for (let index = 0; index < 20; index += 1) await (await scene.get()).text();
    expect(scene.upstream.connections).toBe(1);
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
    const { url, connections } = await scene.startTcp(closesAtSecond);
    await scene.start(url);
    for (let index = 0; index < 6; index += 1)
      expect([index, (await scene.get()).status]).toEqual([index, 200]);
    expect(connections()).toBe(6);
    expect(await scene.upstreamErrors()).toEqual({});
  });

  test('nor does a whole pool of them, and it is asked again once only', async () => {
    let requests = 0;
    const first: Socket[] = [];
    const { url, connections } = await scene.startTcp((socket, count) => {
      socket.on('data', () => (requests += 1));
      if (count > 5) return closesAtSecond(socket);
      socket.once('data', () => {
        first.push(socket);
        if (first.length === 5) for (const each of first) each.write(`${head(2)}{}`);
        socket.once('data', () => socket.destroy());
      });
    });
    await scene.start(url);
    await Promise.all(Array.from({ length: 5 }, async () => (await scene.get()).text()));
    expect(connections()).toBe(5);
    expect((await scene.get()).status).toBe(200);
    expect([connections(), requests]).toEqual([6, 7]);
  });

  test('a POST that met one is not sent again: nobody knows whether it was done', async () => {
    const { url, connections } = await scene.startTcp(closesAtSecond);
    await scene.start(url);
    await (await scene.get()).text();
    expect(await errorOf(await scene.post())).toEqual([502, 'bad_gateway']);
    expect(connections()).toBe(1);
  });

  test('a new connection that breaks off is not tried again', async () => {
    const { url, connections } = await scene.startTcp((socket) =>
      socket.once('data', () => socket.destroy()),
    );
    await scene.start(url);
    expect((await scene.get()).status).toBe(502);
    expect(connections()).toBe(1);
  });

  test('idle ones are closed by us before a Node server would', async () => {
    let closed = false;
    // Connection said by the service: Node then leaves out how long it keeps it, which would be hint enough for us.
    const server = createServer((_request, response) =>
      response.setHeader('Connection', 'keep-alive').end('{}'),
    ).listen(0, '127.0.0.1');
    // A server that closes by itself has ended its own side before it sees the end of ours.
    server.on('connection', (socket) => {
      socket.prependListener('end', () => (closed = !socket.writableEnded));
    });
    await once(server, 'listening');
    scene.closeLater(() => server.close());
    await scene.start(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await (await scene.get()).text();
    await until('we have closed it', () => closed, 20_000);
  });
});
