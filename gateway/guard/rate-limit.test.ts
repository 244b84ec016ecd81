import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { HttpError, redisTimeoutMs } from '@content-platform/chassis';
import { until } from '../../test/support/wait.ts';
import { limitedAddress } from './client-address.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../testing/gateway.ts';
import { startRedis } from '../../test/support/redis-server.ts';
import { machineToken, mint } from '../testing/tokens.ts';
import { startUpstream, type RecordingUpstream } from '../testing/upstream.ts';

let upstream: RecordingUpstream;
let redis: Awaited<ReturnType<typeof startRedis>>;
const gateways: TestGateway[] = [];

beforeAll(async () => {
  upstream = await startUpstream();
  redis = await startRedis();
});
afterAll(async () => {
  await redis.stop();
  await upstream.close();
});
beforeEach(async () => void (await redis.admin.flushall()));
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
});

/** A gateway whose Redis is connected; addresses come from X-Forwarded-For. */
async function start(options: Partial<TestGatewayOptions> = {}): Promise<TestGateway> {
  const gateway = await startGateway({
    services: { auth: upstream.url, 'content-cache': upstream.url },
    redisUrl: redis.url,
    trustedProxies: ['127.0.0.0/8'],
    ...options,
  });
  gateways.push(gateway);
  if (options.redisUrl === undefined)
    await until('Redis is connected', () => gateway.redis?.status === 'ready');
  return gateway;
}

/** Counts the commands that a gateway sends to Redis from now on. */
const commandsOf = (gateway: TestGateway) => jest.spyOn(gateway.redis as Redis, 'sendCommand');

interface Asking {
  path?: string;
  from?: string;
  token?: string;
  body?: string;
  method?: string;
}

function ask(
  { origin }: TestGateway,
  { path = '/health', from = '1.2.3.4', token, body, method = 'GET' }: Asking = {},
) {
  const headers: Record<string, string> = { 'X-Forwarded-For': from };
  if (token) headers['Authorization'] = `Bearer ${token}`;
  if (body) headers['Content-Type'] = 'application/json';
  return fetch(origin + path, { headers, ...(body ? { method: 'POST', body } : { method }) });
}

/** How many of `times` requests get through. */
async function passed(gateway: TestGateway, times: number, asking?: Asking): Promise<number> {
  let count = 0;
  for (let index = 0; index < times; index += 1) {
    if ((await ask(gateway, asking)).status !== 429) count += 1;
  }
  return count;
}

/** /health has 600 a minute: so few. */
const five = 5 / 600;

test('over the limit: 429 with Retry-After in the envelope, counted by route, and nothing arrives', async () => {
  const gateway = await start({ scale: five });
  expect(await passed(gateway, 5, { path: '/.well-known/jwks.json' })).toBe(5);
  const arrived = upstream.received.length;
  const response = await ask(gateway, { path: '/.well-known/jwks.json' });
  expect(await response.json()).toMatchObject({ error: 'rate_limited', code: 429 });
  const seconds = Number(response.headers.get('retry-after'));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(60);
  expect(upstream.received).toHaveLength(arrived);
  const metrics = await gateway.metrics.registry.metrics();
  expect(metrics).toContain('rate_limited_total{route="/.well-known/jwks.json"} 1');
  expect(metrics).toContain('rate_limited_total{route="/health"} 0');
});

test('HEAD counts as GET does', async () => {
  const gateway = await start({ scale: five });
  expect(await passed(gateway, 3)).toBe(3);
  expect(await passed(gateway, 3, { method: 'HEAD' })).toBe(2);
  expect(await passed(gateway, 1)).toBe(0);
});

test('each endpoint and each address has its own count; an IPv6 address shares it with its network', async () => {
  const gateway = await start({ scale: five });
  expect(await passed(gateway, 6)).toBe(5);
  expect(await passed(gateway, 6, { from: '1.2.3.5' })).toBe(5);
  expect(await passed(gateway, 6, { path: '/api/docs' })).toBe(5);
  expect(await passed(gateway, 3, { from: '2001:db8:1:2::1' })).toBe(3);
  expect(await passed(gateway, 3, { from: '2001:db8:1:2:ffff::2' })).toBe(2);
  expect(await passed(gateway, 3, { from: '2001:db8:1:3::1' })).toBe(3);
});

test.each([
  ['1.2.3.4', '1.2.3.4'],
  ['2001:db8:0:1::ff', '2001:db8:0:1'],
  ['unknown', 'unknown'],
])('%s is limited as %s', (address, expected) => {
  expect(limitedAddress(address)).toBe(expected);
});

test('with a token it is the user or the machine that is counted, wherever they come from', async () => {
  const gateway = await start({ scale: five });
  const me = { path: '/api/me', token: mint({ sub: '1' }) };
  expect(await passed(gateway, 3, me)).toBe(3);
  expect(await passed(gateway, 3, { ...me, from: '5.6.7.8', token: mint({ sub: '1' }) })).toBe(2);
  expect(await passed(gateway, 3, { path: '/api/me', token: mint({ sub: '2' }) })).toBe(3);
  const content = { path: '/api/content/webform/1' };
  const fifty = 6000 * five;
  expect(await passed(gateway, fifty + 1, { ...content, token: machineToken('1') })).toBe(fifty);
  expect(await passed(gateway, 1, { ...content, token: mint({ sub: '1' }) })).toBe(1);
});

test('two gateways count together, in keys of their own that go away', async () => {
  const [one, other] = [await start({ scale: five }), await start({ scale: five })];
  expect(await passed(one, 3)).toBe(3);
  expect(await passed(other, 3)).toBe(2);
  const keys = await redis.admin.keys('*');
  expect(keys).toEqual(['rate:health:1.2.3.4']);
  const ttl = await redis.admin.pttl(keys[0]!);
  expect(ttl).toBeGreaterThan(0);
  expect(ttl).toBeLessThanOrEqual(60_000);
});

test('who is over the limit costs Redis nothing more', async () => {
  const gateway = await start({ scale: five });
  await passed(gateway, 10);
  expect(await redis.admin.get('rate:health:1.2.3.4')).toBe('5');
});

test('all who refresh behind one address are many', async () => {
  const gateway = await start();
  expect(await passed(gateway, 100, { path: '/api/token', body: '{}' })).toBe(100);
});

describe('RATE_LIMIT_SCALE', () => {
  const login = { path: '/api/login', body: '{}' };
  test('0 switches limits off, but not those on guessing', async () => {
    const gateway = await start({ scale: 0 });
    expect(await passed(gateway, 650)).toBe(650);
    expect(await passed(gateway, 65, login)).toBe(60);
  });

  test('a small scale leaves the limits on guessing as they are, and the others at one at least', async () => {
    const gateway = await start({ scale: 0.001 });
    expect(await passed(gateway, 3)).toBe(1);
    expect(await passed(gateway, 65, login)).toBe(60);
  });
});

test('tokens that are not valid are limited per address; those that are go on', async () => {
  const gateway = await start({ scale: 0.01 });
  const bad = { path: '/api/content/webform/1', token: 'a.b.c' };
  expect(await passed(gateway, 5, bad)).toBe(3);
  expect((await ask(gateway, { ...bad, from: '5.6.7.8' })).status).toBe(401);
  expect((await ask(gateway, { ...bad, token: mint() })).status).toBe(200);
  // No token is no guess.
  const { status } = await ask(gateway, { path: '/api/content/webform/1' });
  expect(status).toBe(401);
});

test('tokens that cannot be checked at the moment are not counted as bad ones', async () => {
  const verify = () => Promise.reject(new HttpError('service_unavailable', 'No keys.'));
  const gateway = await start({ scale: 0.01, tokens: { verify } });
  expect(await passed(gateway, 5, { path: '/api/me', token: mint() })).toBe(5);
});

describe('without Redis', () => {
  test('away from the start: limits are counted here', async () => {
    const gateway = await start({ scale: five, redisUrl: 'redis://127.0.0.1:1' });
    expect(await passed(gateway, 7)).toBe(5);
  });

  test('hanging: one request a second pays for it, the others are counted here; afterwards it counts again', async () => {
    const gateway = await start({ scale: 10 / 600, redisTimeout: redisTimeoutMs });
    expect(await passed(gateway, 1)).toBe(1);
    redis.pause();
    try {
      const sent = commandsOf(gateway);
      let requests = 0;
      let count = 0;
      for (const start = performance.now(); performance.now() - start < 2_500; requests += 1)
        if ((await ask(gateway, { from: '1.1.1.1' })).status !== 429) count += 1;
      expect(sent.mock.calls.length).toBeGreaterThan(0);
      expect(sent.mock.calls.length).toBeLessThan(requests / 4);
      // Those that asked Redis were not counted by it in time, so they are counted here like all others.
      expect(count).toBe(10);
    } finally {
      redis.resume();
    }
    await until('Redis counts again', async () => {
      await ask(gateway, { from: '2.2.2.2' });
      return (await redis.admin.get('rate:health:2.2.2.2')) !== null;
    });
    // All of them, not just one a second; a busy machine may need more than one try.
    let address = 0;
    await until('all are counted', async () => {
      const from = `3.3.3.${(address += 1)}`;
      await passed(gateway, 5, { from });
      return (await redis.admin.get(`rate:health:${from}`)) === '5';
    });
  });

  test('while it hangs, requests that come together do not wait for it one by one', async () => {
    const gateway = await start({ scale: 1, redisTimeout: redisTimeoutMs });
    await passed(gateway, 1);
    redis.pause();
    try {
      const sent = commandsOf(gateway);
      for (let round = 0; round < 3; round += 1) {
        await Promise.all(Array.from({ length: 20 }, () => ask(gateway)));
      }
      expect(sent.mock.calls.length).toBeLessThan(40);
    } finally {
      redis.resume();
    }
  });
});
