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
 * Sends 2,400 requests at once, which is more than the queue holds, and at the end of them each of `last` on a
 * connection of its own. Returns the connections, `lastClients` with the `replies` to `last` so far.
 */
async function burst(last: string[], flood = rawGet()) {
  const lastClients = await openMany(120 + last.length);
  const clients = lastClients.splice(0, 120);
  const before = lastClients.map(({ received }) => received().length);
  for (const { socket } of clients) socket.write(flood.repeat(20));
  last.forEach((text, index) => lastClients[index]!.socket.write(text, 'latin1'));
  const replies = lastClients.map(
    ({ received }, index) =>
      () =>
        received().slice(before[index]),
  );
  return { clients, lastClients, replies };
}

test('requests beyond the queue get 503 with Retry-After, all others are answered, and connections stay in use', async () => {
  const { clients, lastClients } = await burst([rawGet()]);
  const replies = () => [...clients, ...lastClients].map(({ received }) => received()).join('');
  await until('all are answered', () => statusesIn(replies()).length === clients.length * 21 + 2);
  const refused = statusesIn(replies()).filter((status) => status !== 200);
  expect(new Set(refused)).toEqual(new Set([503]));
  expect(replies().match(/\nRetry-After: 1\r/g)).toHaveLength(refused.length);
  const { values } = await fixture.gateway.metrics.requestsShed.get();
  expect(fixture.upstream.received).toHaveLength(2_400 + 121 + 1 - values[0]!.value);
  expect((await fixture.get()).status).toBe(200);
  const { socket, received } = clients.find((each) => each.received().includes('HTTP/1.1 503'))!;
  socket.write(rawGet());
  await until('it is served', () => statusesIn(received()).length === 22);
  expect(statusesIn(received()).at(-1)).toBe(200);
});

const health = 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n';
const post =
  'POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}';
test.each([post, health])('a flood of %j waits in the queue, and is refused like others', async (flood) => {
  await burst([flood], flood);
  const shed = async () => (await fixture.gateway.metrics.requestsShed.get()).values[0]!.value;
  await until('some are refused', async () => (await shed()) > 0);
});

const slowPost =
  'POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{';

test('with a full queue, /health works, pages read refusals, and bodies and malformed heads end connections', async () => {
  const malformed = rawGet('Host: y\r\n') + rawGet();
  const ending = [slowPost, rawGet('Connection: close\r\n').replace('GET', 'HEAD'), malformed];
  const { lastClients, replies } = await burst([...ending, health, rawGet(`Origin: ${page}\r\n`)]);
  for (const { socket } of lastClients.slice(0, 3))
    await until('the connection has ended', () => socket.readableEnded);
  const [healthReply, reply] = replies.slice(3) as [() => string, () => string];
  await until('both are answered', () => healthReply().includes('\r\n\r\n') && reply().endsWith('}'));
  expect(replies.map((each) => statusesIn(each()))).toEqual([[503], [503], [400], [200], [503]]);
  expect(reply()).toContain(`\r\nAccess-Control-Allow-Origin: ${page}\r\n`);
  expect(reply()).toMatch(/\r\nAccess-Control-Expose-Headers: .*Retry-After/);
  expect(reply()).toContain('\r\nVary: Origin\r\n');
  expect(reply()).toContain('\r\nCache-Control: no-store\r\n');
  expect(JSON.parse(reply().split('\r\n\r\n')[1]!)).toMatchObject({ error: 'overloaded' });
});

test('a request that waits is answered, although a malformed head follows on its connection', async () => {
  const [client, ...others] = await openMany(10);
  for (const { socket } of others) socket.write(rawGet().repeat(5));
  client!.socket.write(rawGet() + rawGet('Host: y\r\n'));
  await until('the connection has ended', () => client!.socket.readableEnded);
  expect(statusesIn(client!.received())).toEqual([200, 200, 400]);
});

test('slow senders and slow readers do not delay other clients', async () => {
  const large = 'GET /api/docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3);
  const sockets = Array.from({ length: 200 }, () => fixture.connect().pause());
  sockets.forEach((socket, index) => socket.write(index % 2 === 0 ? slowPost : large));
  await until('all are connected', () => sockets.every(({ connecting }) => !connecting));
  expect((await fixture.get()).status).toBe(200);
  expect((await fixture.gateway.metrics.requestsShed.get()).values[0]!.value).toBe(0);
});
