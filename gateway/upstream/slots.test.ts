import { expect, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { until } from '../../test/support/wait.ts';
import { errorOf, rawGet, useTestGateway } from '../testing/use-test-gateway.ts';
import { sayOk } from '../testing/upstream.ts';

const fixture = useTestGateway();

/** Hundreds of connections are opened at once here: a busy machine takes its time. */
const patient = { connect: 30_000, connectTotal: 40_000, response: 60_000 };

test('more requests than there may be at once wait for their turn', async () => {
  const held: ServerResponse[] = [];
  let [open, most] = [0, 0];
  const note = (response: ServerResponse) => {
    most = Math.max(most, (open += 1));
    response.once('close', () => (open -= 1));
  };
  fixture.upstream.answer = (_request, response) => {
    note(response);
    held.push(response);
  };
  await fixture.start(fixture.upstream.url, { timeouts: patient });
  // Sent ahead on a few connections: all are asked for at once.
  let raw = '';
  const sockets = Array.from({ length: 40 }, () => fixture.connect());
  for (const socket of sockets) {
    socket.setEncoding('latin1').on('data', (chunk: string) => (raw += chunk));
    socket.write(rawGet().repeat(20));
  }
  await until('as many as there may be are at the service', () => held.length === 512);
  fixture.upstream.answer = (request, response) => {
    note(response);
    sayOk(request, response);
  };
  for (const response of held) response.end('{}');
  const statuses = () => raw.match(/HTTP\/1\.1 \d+/g) ?? [];
  await until('all are answered', () => statuses().length === 800);
  for (const socket of sockets) socket.destroy();
  expect(new Set(statuses())).toEqual(new Set(['HTTP/1.1 200']));
  expect(most).toBe(512);
});

test('what could only wait for long is refused at once', async () => {
  fixture.upstream.answer = () => undefined;
  await fixture.start(fixture.upstream.url, { timeouts: patient });
  const sockets = Array.from({ length: 60 }, () => fixture.connect());
  fixture.closeLater(() => sockets.forEach((socket) => socket.destroy()));
  // The gateway answers a connection's requests in their order: those that are refused are seen at the service's count.
  for (const socket of sockets) socket.resume().write(rawGet().repeat(20));
  await until(
    'there are too many',
    async () => (await fixture.upstreamErrors())['busy'] === 1200 - 512 - 512,
  );
  expect(await errorOf(await fixture.get())).toEqual([503, 'service_unavailable']);
  // The others are still being connected.
  await until('those that are at the service have arrived', () => fixture.upstream.received.length >= 512);
  expect(fixture.upstream.received).toHaveLength(512);
});

test('who waits too long for a turn is told so', async () => {
  const endless: ServerResponse[] = [];
  const goOn = (response: ServerResponse) => response.write('more');
  fixture.upstream.answer = (_request, response) => {
    endless.push(response);
    goOn(response);
  };
  const timer = setInterval(() => endless.forEach(goOn), 1_000);
  fixture.closeLater(() => clearInterval(timer));
  await fixture.start(fixture.upstream.url, { timeouts: { ...patient, response: 4_000 } });
  const sockets = Array.from({ length: 26 }, () => fixture.connect());
  // Not all at once: none may wait for long for the beginning of its reply.
  for (const [index, socket] of sockets.entries()) {
    socket.write(rawGet().repeat(20));
    await until('they are at the service', () => endless.length === Math.min(20 * (index + 1), 512));
  }
  expect(await errorOf(await fixture.get())).toEqual([503, 'service_unavailable']);
  expect((await fixture.upstreamErrors())['busy']).toBeGreaterThan(0);
  for (const socket of sockets) socket.destroy();
});

test('clients that are gone before their request is sent take up no room', async () => {
  let checking = 0;
  const goOn = Promise.withResolvers<void>();
  const verify = async () => {
    checking += 1;
    await goOn.promise;
    return {
      kind: 'user' as const,
      id: 1,
      sessionId: 's',
      mustChangePassword: false,
      scopes: new Set<never>(),
    };
  };
  await fixture.start(fixture.upstream.url, { tokens: { verify } });
  const sockets = Array.from({ length: 30 }, () => fixture.connect());
  const request = 'GET /api/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n';
  for (const socket of sockets) socket.write(request.repeat(20));
  await until('more tokens than there is room are being checked', () => checking === 600);
  for (const socket of sockets) socket.destroy();
  await until(
    'all have been noticed',
    () => fixture.gateway.log.filter((line) => line.includes('"status":499')).length === 600,
  );
  goOn.resolve();
  const answered = await fetch(`${fixture.gateway.origin}/api/me`, {
    headers: { Authorization: 'Bearer x' },
  });
  expect(answered.status).toBe(200);
  expect(fixture.upstream.received).toHaveLength(1);
});

test('clients that do not read their replies keep no room of a service that has answered', async () => {
  const large = Buffer.alloc(5_000_000, 'x');
  fixture.upstream.answer = ({ url }, response) => void response.end(url!.endsWith('large') ? large : '{}');
  await fixture.start(fixture.upstream.url, { timeouts: patient });
  const sockets = Array.from({ length: 30 }, () => fixture.connect().pause());
  fixture.closeLater(() => sockets.forEach((socket) => socket.destroy()));
  const start = rawGet().replace(' HTTP', '?large HTTP');
  for (const socket of sockets) socket.write(start + rawGet().repeat(19));
  await until('there was no room left', () => fixture.upstream.received.length >= 512);
  expect((await fixture.get({ signal: AbortSignal.timeout(30_000) })).status).toBe(200);
});

test('requests that failed keep no room, though their replies wait behind one that the client does not read', async () => {
  const large = Buffer.alloc(5_000_000, 'x');
  fixture.upstream.answer = ({ url }, response) => {
    if (url!.endsWith('fail')) response.writeHead(500).end();
    else response.end(url!.endsWith('large') ? large : '{}');
  };
  await fixture.start(fixture.upstream.url, { timeouts: patient });
  const sockets = Array.from({ length: 30 }, () => fixture.connect().pause());
  fixture.closeLater(() => sockets.forEach((socket) => socket.destroy()));
  const [start, failing] = ['large', 'fail'].map((query) => rawGet().replace(' HTTP', `?${query} HTTP`));
  for (const socket of sockets) socket.write(start + failing!.repeat(20));
  await until('all have failed', async () => (await fixture.upstreamErrors())['broken'] === 600);
  const good = Array.from({ length: 100 }, () => fixture.get({ signal: AbortSignal.timeout(30_000) }));
  expect(new Set((await Promise.all(good)).map(({ status }) => status))).toEqual(new Set([200]));
});
