import { describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { until } from '../../test/support/wait.ts';
import { startBlackholeServer } from '../testing/blackhole-server.ts';
import { errorOf, head, useTestGateway } from '../testing/use-test-gateway.ts';
import { startUpstream, type RecordingUpstream } from '../testing/upstream.ts';

const fixture = useTestGateway();

describe('a service that is away', () => {
  test('503 with Retry-After, and the other services are unharmed', async () => {
    const { url, close } = await startUpstream();
    await close();
    await fixture.start(url);
    const response = await fixture.post();
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await errorOf(response)).toEqual([503, 'service_unavailable']);
    expect(await fixture.upstreamErrors()).toEqual({ connect: 1 });
    expect(await fixture.upstreamErrors('content-cache')).toEqual({});
    expect(fixture.gateway.log.join('')).toContain('ECONNREFUSED');
  });

  test('a request is sent, once, when the second attempt to connect works', async () => {
    const { url, close } = await startUpstream();
    await close();
    await fixture.start(url);
    const answer = fixture.post();
    // Between the refused attempt and the next one.
    const late = await new Promise<RecordingUpstream>((resolve) =>
      setTimeout(() => void startUpstream(Number(new URL(url).port)).then(resolve), 30),
    );
    fixture.closeLater(() => late.close());
    expect((await answer).status).toBe(200);
    expect(late.received).toMatchObject([{ method: 'POST', body: '{"a":1}' }]);
    expect(await fixture.upstreamErrors()).toEqual({});
  });

  test('503 for one that does not even accept connections', async () => {
    const deaf = await startBlackholeServer();
    fixture.closeLater(deaf.close);
    await fixture.start(deaf.url, { timeouts: { connect: 150, connectTotal: 400 } });
    expect(await errorOf(await fixture.post())).toEqual([503, 'service_unavailable']);
    expect(await fixture.upstreamErrors()).toEqual({ connect: 1 });
  });
});

describe('kept connections', () => {
  test('many requests share them', async () => {
    await fixture.start(fixture.upstream.url);
    for (let index = 0; index < 20; index += 1) await (await fixture.get()).text();
    expect(fixture.upstream.connections).toBe(1);
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
    const { url, connections } = await fixture.startTcp(closesAtSecond);
    await fixture.start(url);
    for (let index = 0; index < 6; index += 1)
      expect([index, (await fixture.get()).status]).toEqual([index, 200]);
    expect(connections()).toBe(6);
    expect(await fixture.upstreamErrors()).toEqual({});
  });

  test('nor does a whole pool of them, and it is asked again once only', async () => {
    let requests = 0;
    const first: Socket[] = [];
    const { url, connections } = await fixture.startTcp((socket, count) => {
      socket.on('data', () => (requests += 1));
      if (count > 5) return closesAtSecond(socket);
      socket.once('data', () => {
        first.push(socket);
        if (first.length === 5) for (const each of first) each.write(`${head(2)}{}`);
        socket.once('data', () => socket.destroy());
      });
    });
    await fixture.start(url);
    await Promise.all(Array.from({ length: 5 }, async () => (await fixture.get()).text()));
    expect(connections()).toBe(5);
    expect((await fixture.get()).status).toBe(200);
    expect([connections(), requests]).toEqual([6, 7]);
  });

  test('a POST that met one is not sent again: nobody knows whether it was done', async () => {
    const { url, connections } = await fixture.startTcp(closesAtSecond);
    await fixture.start(url);
    await (await fixture.get()).text();
    expect(await errorOf(await fixture.post())).toEqual([502, 'bad_gateway']);
    expect(connections()).toBe(1);
  });

  test('a new connection that breaks off is not tried again', async () => {
    const { url, connections } = await fixture.startTcp((socket) =>
      socket.once('data', () => socket.destroy()),
    );
    await fixture.start(url);
    expect((await fixture.get()).status).toBe(502);
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
    fixture.closeLater(() => server.close());
    await fixture.start(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await (await fixture.get()).text();
    await until('we have closed it', () => closed, 20_000);
  });
});
