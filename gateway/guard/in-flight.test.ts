import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { startRedis } from '../../test/support/redis-server.ts';
import { until } from '../../test/support/wait.ts';
import { maxInFlight } from './rate-limit.ts';
import { useTestGateway } from '../testing/use-test-gateway.ts';
import { mint } from '../testing/tokens.ts';

const fixture = useTestGateway();
const content = '/api/content/webform/1';
const held: ServerResponse[] = [];
let redis: Awaited<ReturnType<typeof startRedis>>;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

interface Asking {
  path?: string;
  user?: string;
  from?: string;
}

async function start(scale = 1) {
  held.splice(0);
  fixture.upstream.answer = (_request, response) => void held.push(response);
  const options = { redisUrl: redis.url, trustedProxies: ['127.0.0.0/8'], scale };
  await fixture.start(fixture.upstream.url, options);
}

const tokens = new Map(['1', '2'].map((sub) => [sub, mint({ sub })]));

function headersOf({ user, from = '1.2.3.4' }: Asking) {
  return { 'X-Forwarded-For': from, ...(user ? { Authorization: `Bearer ${tokens.get(user)}` } : {}) };
}

/** Requests that are under way, 20 sent ahead on each connection, and a way to hang up. */
async function begin(count: number, asking: Asking) {
  const headers = Object.entries({ Host: 'x', ...headersOf(asking) }).map((pair) => pair.join(': '));
  const request = `GET ${asking.path ?? content} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`;
  const before = held.length;
  const sockets = Array.from({ length: count / 20 }, () => fixture.connect());
  for (const socket of sockets) socket.resume().write(request.repeat(20));
  const hangUp = () => sockets.forEach((socket) => socket.destroy());
  fixture.closeLater(hangUp);
  await until('all are under way', () => held.length - before === count);
  return hangUp;
}

const ask = (asking: Asking = {}) =>
  fetch(fixture.gateway.origin + (asking.path ?? content), { headers: headersOf(asking) });

/** Whether one more gets through to the service, which answers it. */
async function getsThrough(asking: Asking) {
  const before = held.length;
  let status: number | undefined;
  const answer = ask(asking).then((response) => (status = response.status));
  await until('it has arrived or is answered', () => held[before] ?? status);
  held[before]?.end('{}');
  return answer;
}

test('a user has so many under way at once: the next is answered 429, counted, and goes no further', async () => {
  await start();
  const hangUp = await begin(maxInFlight, { user: '1' });
  const response = await ask({ user: '1', from: '5.6.7.8' });
  expect(await response.json()).toMatchObject({ error: 'rate_limited', code: 429 });
  expect(response.headers.get('retry-after')).toBe('1');
  expect(held).toHaveLength(maxInFlight);
  const metrics = await fixture.gateway.metrics.registry.metrics();
  expect(metrics).toContain('rate_limited_total{route="/api/content/:model/:id"} 1');
  // Others are not concerned, and one that ends makes room for one.
  expect(await getsThrough({ user: '2' })).toBe(200);
  held[0]!.end('{}');
  await until('there is room', async () => (await getsThrough({ user: '1' })) === 200);
  // Nothing is left of those whose client goes away.
  hangUp();
  const gone = () => fixture.gateway.log.filter((line) => line.includes('"status":499')).length;
  await until('the gateway has noticed', () => gone() === maxInFlight - 1);
  await begin(maxInFlight, { user: '1' });
  expect((await ask({ user: '1' })).status).toBe(429);
});

test('without a token it is the address that is counted', async () => {
  await start();
  const path = '/.well-known/jwks.json';
  await begin(maxInFlight, { path });
  expect((await ask({ path })).status).toBe(429);
  expect(await getsThrough({ path, from: '5.6.7.8' })).toBe(200);
});

test('a scale of 0 switches it off', async () => {
  await start(0);
  await begin(maxInFlight + 40, { user: '1' });
});
