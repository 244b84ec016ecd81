import { beforeEach, expect, test } from '@jest/globals';
import { until } from '../../test/support/wait.ts';
import { rawGet, useTestGateway } from '../testing/use-test-gateway.ts';

const fixture = useTestGateway();
const page = 'https://app.example.com';
// A burst takes long on a busy machine.
beforeEach(() => fixture.start({ corsOrigins: [page], timeouts: { response: 60_000 } }));

const statusesIn = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));

/** Opens `count` connections that the gateway has accepted. */
async function openMany(count: number) {
  const clients = Array.from({ length: count }, () => fixture.open(rawGet()));
  await until('all are accepted', () => clients.every(({ received }) => statusesIn(received()).length === 1));
  return clients;
}

/**
 * Sends 2,400 requests at once, which is more than the queue holds, and at the end of them `last` on a connection of its
 * own. Returns the connections, and the reply to `last` so far.
 */
async function burst(last: string, flood = rawGet()) {
  const clients = await openMany(121);
  const own = clients.pop()!;
  const skip = own.received().length;
  for (const { socket } of clients) socket.write(flood.repeat(20));
  own.socket.write(last, 'latin1');
  return { clients, own, reply: () => own.received().slice(skip) };
}

test('requests beyond the queue get 503 with Retry-After, and all others are forwarded and answered', async () => {
  const { clients } = await burst(rawGet());
  const replies = () => clients.map(({ received }) => received()).join('');
  await until('all are answered', () => statusesIn(replies()).length === clients.length * 21);
  const refused = statusesIn(replies()).filter((status) => status !== 200);
  expect(new Set(refused)).toEqual(new Set([503]));
  expect(replies().match(/\nRetry-After: 1\r/g)).toHaveLength(refused.length);
  const { values } = await fixture.gateway.metrics.requestsShed.get();
  expect(fixture.upstream.received).toHaveLength(2_400 + 121 + 1 - values[0]!.value);
  expect((await fixture.get()).status).toBe(200);
});

test('requests with a body wait in the queue, and are refused like others', async () => {
  const post =
    'POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}';
  await burst(post, post);
  const shed = async () => (await fixture.gateway.metrics.requestsShed.get()).values[0]!.value;
  await until('some are refused', async () => (await shed()) > 0);
});

test('a page of an allowed origin can read the refusal, which has the envelope', async () => {
  const { reply } = await burst(rawGet(`Origin: ${page}\r\n`));
  await until('it is answered', () => reply().endsWith('}'));
  expect(statusesIn(reply())).toEqual([503]);
  expect(reply()).toContain(`\r\nAccess-Control-Allow-Origin: ${page}\r\n`);
  expect(reply()).toMatch(/\r\nAccess-Control-Expose-Headers: .*Retry-After/);
  expect(reply()).toContain('\r\nVary: Origin\r\n');
  expect(reply()).toContain('\r\nCache-Control: no-store\r\n');
  expect(JSON.parse(reply().split('\r\n\r\n')[1]!)).toMatchObject({ error: 'overloaded' });
});

test.each([
  [
    'a body',
    'POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  ],
  ['HEAD with Connection: close', rawGet('Connection: close\r\n').replace('GET', 'HEAD')],
])('the refusal of %s ends its connection', async (_, request) => {
  const { own, reply } = await burst(request);
  await until('the connection has ended', () => own.socket.readableEnded);
  expect(statusesIn(reply())).toEqual([503]);
});

test('/health is answered while the queue is full', async () => {
  const { reply } = await burst('GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
  await until('it is answered', () => reply().includes('\r\n\r\n'));
  expect(statusesIn(reply())).toEqual([200]);
});

test('a malformed head ends its connection while the queue is full', async () => {
  const { own, reply } = await burst(rawGet('Host: y\r\n') + rawGet());
  await until('the connection has ended', () => own.socket.readableEnded);
  expect(statusesIn(reply())).toEqual([400]);
});

test('a request that waits is answered, although a malformed head follows on its connection', async () => {
  const [client, ...others] = await openMany(10);
  for (const { socket } of others) socket.write(rawGet().repeat(5));
  client!.socket.write(rawGet() + rawGet('Host: y\r\n'));
  await until('the connection has ended', () => client!.socket.readableEnded);
  expect(statusesIn(client!.received())).toEqual([200, 200, 400]);
});

test('a connection with a refusal serves further requests', async () => {
  const { clients } = await burst(rawGet());
  const isOver = () => clients.every(({ received }) => statusesIn(received()).length === 21);
  await until('all are answered', isOver);
  const { socket, received } = clients.find((each) => each.received().includes('HTTP/1.1 503'))!;
  socket.write(rawGet());
  await until('it is served', () => statusesIn(received()).length === 22);
  expect(statusesIn(received()).at(-1)).toBe(200);
});

test('slow senders and slow readers delay nobody', async () => {
  const slow =
    'POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{';
  const large = 'GET /api/docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3);
  const sockets = Array.from({ length: 200 }, () => fixture.connect().pause());
  sockets.forEach((socket, index) => socket.write(index % 2 === 0 ? slow : large));
  await until('all are connected', () => sockets.every(({ connecting }) => !connecting));
  expect((await fixture.get()).status).toBe(200);
  expect((await fixture.gateway.metrics.requestsShed.get()).values[0]!.value).toBe(0);
});
