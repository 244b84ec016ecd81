import { describe, expect, test } from '@jest/globals';
import { Server } from 'node:http';
import type { Socket } from 'node:net';
import { startHttpServer } from '../../test/support/http-server.ts';
import { until } from '../../test/support/wait.ts';
import { startBlackholeServer } from '../testing/blackhole-server.ts';
import { startUpstream, type RecordingUpstream } from '../testing/upstream.ts';
import { errorOf, head, useTestGateway } from '../testing/use-test-gateway.ts';
import { timeouts } from '../timeouts.ts';

const fixture = useTestGateway();
const startBefore = (url: string) => fixture.start({ services: { auth: url } });

/** Returns the URL of a service that does not listen. */
async function nowhere(): Promise<string> {
  const { url, close } = await startUpstream();
  await close();
  return url;
}

describe('a service that is unavailable', () => {
  test('returns 503 with Retry-After and does not affect other services', async () => {
    await startBefore(await nowhere());
    const response = await fixture.post();
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await errorOf(response)).toEqual([503, 'service_unavailable']);
    expect(await fixture.upstreamErrors()).toEqual({ connect: 1 });
    expect(await fixture.upstreamErrors('content-cache')).toEqual({});
    expect(fixture.gateway.log.join('')).toContain('ECONNREFUSED');
  });

  test('sends the request once if the second connection attempt succeeds', async () => {
    const url = await nowhere();
    await startBefore(url);
    const answer = fixture.post();
    // Between the refused attempt and the next one.
    const late = await new Promise<RecordingUpstream>((resolve) =>
      setTimeout(() => void startUpstream(Number(new URL(url).port)).then(resolve), 30),
    );
    fixture.closeLater(late.close);
    expect((await answer).status).toBe(200);
    expect(late.received).toMatchObject([{ method: 'POST', body: '{"a":1}' }]);
    expect(await fixture.upstreamErrors()).toEqual({});
  });

  test('returns 503 if the service accepts no connections', async () => {
    const { url, close } = await startBlackholeServer();
    fixture.closeLater(close);
    await fixture.start({ services: { auth: url }, timeouts: { connect: 150, connectTotal: 400 } });
    expect(await errorOf(await fixture.post())).toEqual([503, 'service_unavailable']);
    expect(await fixture.upstreamErrors()).toEqual({ connect: 1 });
  });
});

describe('kept connections', () => {
  /** Answers each connection's first request and closes it at the second, as a service that is just stopping. */
  const closesAtSecond = (socket: Socket, reply = `${head(2)}{}`) =>
    socket.once('data', () => {
      socket.write(reply);
      socket.once('data', () => socket.destroy());
    });
  const closesHeadAtSecond = (socket: Socket) =>
    closesAtSecond(socket, head(2).replace('\r\n', '\r\nConnection: keep-alive\r\n'));

  test('shares connections among many requests', async () => {
    await fixture.start();
    for (let index = 0; index < 20; index += 1) await (await fixture.get()).text();
    expect(fixture.upstream.connections).toBe(1);
  });

  test.each(['GET', 'HEAD'])('retries %s if the kept connection is dead', async (method) => {
    const { url, connections } = await fixture.startTcp((socket) =>
      method === 'GET' ? closesAtSecond(socket) : closesHeadAtSecond(socket),
    );
    await startBefore(url);
    for (let index = 0; index < 6; index += 1)
      expect([index, (await fixture.get({ method })).status]).toEqual([index, 200]);
    expect(connections()).toBe(6);
    expect(await fixture.upstreamErrors()).toEqual({});
  });

  test('retries GET only once if all kept connections are dead', async () => {
    let requests = 0;
    const first: Socket[] = [];
    const { url, connections } = await fixture.startTcp((socket, count) => {
      socket.on('data', () => (requests += 1));
      if (count > 5) return void closesAtSecond(socket);
      socket.once('data', () => {
        first.push(socket);
        if (first.length === 5) for (const each of first) each.write(`${head(2)}{}`);
        socket.once('data', () => socket.destroy());
      });
    });
    await startBefore(url);
    await Promise.all(Array.from({ length: 5 }, async () => (await fixture.get()).text()));
    expect(connections()).toBe(5);
    expect((await fixture.get()).status).toBe(200);
    expect([connections(), requests]).toEqual([6, 7]);
  });

  test('does not repeat a POST on a dead connection, because it may have been executed', async () => {
    const { url, connections } = await fixture.startTcp((socket) => closesAtSecond(socket));
    await startBefore(url);
    await (await fixture.get()).text();
    expect(await errorOf(await fixture.post())).toEqual([502, 'bad_gateway']);
    expect(connections()).toBe(1);
  });

  test('closes idle connections before a Node server does', async () => {
    expect(timeouts.keepAlive).toBeLessThan(new Server().keepAliveTimeout);
    let closedByGateway = false;
    const { origin, close } = await startHttpServer(({ socket }, response) => {
      // A server that closes has ended its own side before it sees the other end.
      socket.prependListener('end', () => (closedByGateway = !socket.writableEnded));
      // With Connection from the service Node leaves out Keep-Alive, which says how long the gateway may wait.
      response.setHeader('Connection', 'keep-alive').end('{}');
    });
    fixture.closeLater(close);
    await fixture.start({ services: { auth: origin }, timeouts: { keepAlive: 1_000 } });
    await (await fixture.get()).text();
    await until('the gateway has closed it', () => closedByGateway);
  });
});
