import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { createBreaker, createLogger, HttpError, redisTimeoutMs } from '@content-platform/chassis';
import { health } from '@content-platform/contract';
import { startRedis } from '../../test/support/redis-server.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import type { TestGatewayOptions } from '../testing/gateway.ts';
import { machineToken, mint } from '../testing/tokens.ts';
import { useTestGateway } from '../testing/use-test-gateway.ts';
import { rateLimitAddress } from './request-head.ts';
import { createExactLimiter, createRateLimits, maxInFlight } from './rate-limit.ts';

const fixture = useTestGateway();
const redis = useStarted(startRedis);
beforeEach(async () => void (await redis.admin.flushall()));

/** Starts a gateway that is connected to Redis; addresses come from X-Forwarded-For. */
async function start(options: Partial<TestGatewayOptions> = {}): Promise<void> {
  await fixture.start({ redisUrl: redis.url, trustedProxies: ['127.0.0.0/8'], ...options });
  if (options.redisUrl === undefined)
    await until('Redis is connected', () => fixture.gateway.redis?.status === 'ready');
}

interface TestRequest {
  path?: string;
  from?: string;
  token?: string;
  body?: string;
  method?: string;
}

function ask({ path = '/health', from = '1.2.3.4', token, body, method = 'GET' }: TestRequest = {}) {
  const headers: Record<string, string> = { 'X-Forwarded-For': from };
  if (token) headers['Authorization'] = `Bearer ${token}`;
  if (body) headers['Content-Type'] = 'application/json';
  return fixture.ask(path, { headers, ...(body ? { method: 'POST', body } : { method }) });
}

/** Returns how many of `times` requests get through. `isUp`: Redis responds. */
async function passed(times: number, request?: TestRequest, isUp = true): Promise<number> {
  let count = 0;
  for (let index = 0; index < times; index += 1) {
    if ((await ask(request)).status !== 429) count += 1;
    // On a busy machine the gateway would allow the next request before it knows Redis's count.
    if (isUp) await redis.admin.ping();
  }
  return count;
}

/** A scale that allows 5 requests a minute to /health, instead of 600. */
const fiveAMinute = 5 / 600;

test('returns 429 with Retry-After over the limit, and counts it by route', async () => {
  await start({ scale: fiveAMinute });
  const path = '/.well-known/jwks.json';
  expect(await passed(5, { path })).toBe(5);
  const response = await ask({ path });
  expect(await response.json()).toMatchObject({ error: 'rate_limited', code: 429 });
  const seconds = Number(response.headers.get('retry-after'));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(60);
  expect(fixture.upstream.received).toHaveLength(5);
  const metrics = await fixture.gateway.metrics.registry.metrics();
  expect(metrics).toContain('rate_limited_total{route="/.well-known/jwks.json"} 1');
  expect(metrics).toContain('rate_limited_total{route="/health"} 0');
});

test('counts HEAD like GET', async () => {
  await start({ scale: fiveAMinute });
  expect(await passed(3)).toBe(3);
  expect(await passed(3, { method: 'HEAD' })).toBe(2);
  expect(await passed(1)).toBe(0);
});

test('counts per endpoint and IP address, and IPv6 addresses per /64 network', async () => {
  await start({ scale: fiveAMinute });
  expect(await passed(6)).toBe(5);
  expect(await passed(6, { from: '1.2.3.5' })).toBe(5);
  expect(await passed(6, { path: '/api/docs' })).toBe(5);
  expect(await passed(3, { from: '2001:db8:1:2::1' })).toBe(3);
  expect(await passed(3, { from: '2001:db8:1:2:ffff::2' })).toBe(2);
  expect(await passed(3, { from: '2001:db8:1:3::1' })).toBe(3);
});

test.each([
  ['1.2.3.4', '1.2.3.4'],
  ['2001:db8:0:1::ff', '2001:db8:0:1'],
  ['unknown', 'unknown'],
])('%s is limited as %s', (address, expected) => {
  expect(rateLimitAddress(address)).toBe(expected);
});

test('counts requests with a token per user or client, across IP addresses', async () => {
  await start({ scale: fiveAMinute });
  const me = { path: '/api/me', token: mint({ sub: '1' }) };
  expect(await passed(3, me)).toBe(3);
  expect(await passed(3, { ...me, from: '5.6.7.8', token: mint({ sub: '1' }) })).toBe(2);
  expect(await passed(3, { path: '/api/me', token: mint({ sub: '2' }) })).toBe(3);
  // A machine client and a user with the same name have separate counts.
  const read = { path: content };
  const fifty = 6000 * fiveAMinute;
  expect(await passed(fifty + 1, { ...read, token: machineToken('1', 'content:read') })).toBe(fifty);
  expect(await passed(1, { ...read, token: mint({ sub: '1' }) })).toBe(1);
});

test('two gateways share counts in Redis keys that expire', async () => {
  await start({ scale: fiveAMinute });
  const counted = (count: string) =>
    until(`Redis counts ${count}`, async () => (await redis.admin.get('rate:health:1.2.3.4')) === count);
  expect(await passed(3)).toBe(3);
  await counted('3');
  await start({ scale: fiveAMinute });
  expect(await passed(1)).toBe(1);
  await counted('4');
  expect(await passed(10)).toBe(1);
  await counted('5');
  expect(await redis.admin.keys('*')).toEqual(['rate:health:1.2.3.4']);
  const ttl = await redis.admin.pttl('rate:health:1.2.3.4');
  expect(ttl).toBeGreaterThan(0);
  expect(ttl).toBeLessThanOrEqual(60_000);
});

test('a subject over its limit that pauses is still refused', async () => {
  await start({ scale: fiveAMinute });
  expect(await passed(6)).toBe(5);
  await until('Redis has the count', async () => (await redis.admin.get('rate:health:1.2.3.4')) === '5');
  // The gateway forgets other subjects after 200 ms without requests.
  await sleep(500);
  expect(await passed(2)).toBe(0);
  expect(await redis.admin.get('rate:health:1.2.3.4')).toBe('5');
});

test('allows a hundred clients behind one IP address to refresh their tokens', async () => {
  await start();
  expect(await passed(100, { path: '/api/token', body: '{}' })).toBe(100);
});

test.each([
  ['0 switches limits off, but not those on guessing', 0, 70, 70],
  ['a small scale leaves limits on guessing as they are, and others at one at least', 0.001, 3, 1],
])('RATE_LIMIT_SCALE: %s', async (_, scale, times, expected) => {
  await start({ scale });
  // Its limit is 60 a minute.
  expect(await passed(times, { path: '/api/identity/login' })).toBe(expected);
  expect(await passed(65, { path: '/api/login', body: '{}' })).toBe(60);
});

test('limits invalid tokens per IP address, but not valid tokens', async () => {
  await start({ scale: 0.01 });
  const bad = { path: '/api/content/webform/1', token: 'a.b.c' };
  expect(await passed(5, bad)).toBe(3);
  expect((await ask({ ...bad, from: '5.6.7.8' })).status).toBe(401);
  expect(await passed(2, { ...bad, from: '2001:db8:1:2::1' })).toBe(2);
  expect(await passed(2, { ...bad, from: '2001:db8:1:2:ffff::2' })).toBe(1);
  expect((await ask({ ...bad, token: mint() })).status).toBe(200);
  // A request without a token does not count as a guess.
  expect((await ask({ path: '/api/content/webform/1' })).status).toBe(401);
});

test('does not count tokens as invalid while they cannot be checked', async () => {
  const verify = () => Promise.reject(new HttpError('service_unavailable', 'No keys.'));
  await start({ scale: 0.01, tokens: { verify } });
  expect(await passed(5, { path: '/api/me', token: mint() })).toBe(5);
});

const content = '/api/content/webform/1';
const [first, second] = ['1', '2'].map((sub) => ({ Authorization: `Bearer ${mint({ sub })}` }));
const held: ServerResponse[] = [];

function holdAll(scale = 1): Promise<void> {
  held.splice(0);
  fixture.upstream.answer = (_request, response) => void held.push(response);
  return start({ scale });
}

/** Sends requests that the service leaves unanswered. Returns a function that disconnects them. */
async function begin(count: number, path: string, headers: Record<string, string> = {}) {
  const before = held.length;
  const hangUp = new AbortController();
  for (let index = 0; index < count; index += 1)
    fixture.ask(path, { headers, signal: hangUp.signal }).catch(() => undefined);
  fixture.closeLater(() => hangUp.abort());
  await until('all requests are in progress', () => held.length - before === count);
  return () => hangUp.abort();
}

/** Returns the status of another request, which the service answers if it arrives. */
async function statusOfNext(path: string, headers: Record<string, string> = {}): Promise<number> {
  fixture.upstream.answer = (_request, response) => response.end('{}');
  return (await fixture.ask(path, { headers })).status;
}

test('returns 429 above the in-flight limit of a user, and counts the refusal', async () => {
  await holdAll();
  const hangUp = await begin(maxInFlight, content, first);
  const response = await fixture.ask(content, { headers: { ...first, 'X-Forwarded-For': '5.6.7.8' } });
  expect(await response.json()).toMatchObject({ error: 'rate_limited', code: 429 });
  expect(response.headers.get('retry-after')).toBe('1');
  expect(held).toHaveLength(maxInFlight);
  const metrics = await fixture.gateway.metrics.registry.metrics();
  expect(metrics).toContain('rate_limited_total{route="/api/content/:model/:id"} 1');
  expect(await statusOfNext(content, second)).toBe(200);
  // A request that ends frees one slot, and so does each client that disconnects.
  held[0]!.end('{}');
  await until('a slot is free', async () => (await statusOfNext(content, first)) === 200);
  hangUp();
  await until('all slots are free', async () => {
    const all = Array.from({ length: maxInFlight }, () => statusOfNext(content, first));
    return (await Promise.all(all)).every((status) => status === 200);
  });
});

test('counts requests without a token per IP address', async () => {
  await holdAll();
  const path = '/.well-known/jwks.json';
  await begin(maxInFlight, path);
  expect(await statusOfNext(path)).toBe(429);
  expect(await statusOfNext(path, { 'X-Forwarded-For': '5.6.7.8' })).toBe(200);
});

test('requests of clients that disconnected before they were counted are not in flight', async () => {
  await start();
  const { redis: shared, metrics } = fixture.gateway;
  const limits = createRateLimits(shared!, [health], 1, metrics, createLogger('gateway', 'silent'));
  const locals = { endpoint: health, address: '1.2.3.4' };
  const gone = { destroyed: true, once: () => undefined, locals } as never;
  for (let n = 0; n <= maxInFlight; n += 1) await limits.count(gone); // would throw above the limit
});

test('a scale of 0 disables the in-flight limit', async () => {
  await holdAll(0);
  await begin(maxInFlight + 40, content, first); // waits until the service has all of them
});

describe('without Redis', () => {
  test('counts limits in the process', async () => {
    await start({ scale: fiveAMinute, redisUrl: 'redis://127.0.0.1:1' });
    expect(await passed(7)).toBe(5);
  });

  /** Waits until Redis counts the requests of a new address again. */
  async function untilRedisCounts(request: TestRequest): Promise<void> {
    let tries = 0;
    const key = `rate:${request.path === '/api/login' ? 'login' : 'health'}`;
    await until('Redis counts all', async () => {
      fixture.skipTime(1_000);
      const from = `3.3.3.${(tries += 1)}`;
      await passed(5, { ...request, from });
      // The test's clock stands still, but timers run.
      await sleep(300);
      return (await redis.admin.get(`${key}:${from}`)) === '5';
    });
  }

  test('while Redis hangs, one login a second waits for it; afterwards Redis counts again', async () => {
    await start({ redisTimeout: redisTimeoutMs });
    const login = { path: '/api/login', body: '{}' };
    await untilRedisCounts(login);
    const sent = jest.spyOn(fixture.gateway.redis as Redis, 'sendCommand');
    redis.pause();
    try {
      // 80 concurrent requests share the wait.
      const together = await Promise.all(
        Array.from({ length: 80 }, () => ask({ ...login, from: '1.1.1.1' })),
      );
      expect(together.filter(({ status }) => status !== 429)).toHaveLength(60);
      const commands = sent.mock.calls.length;
      expect(commands).toBeGreaterThan(0);
      await passed(5, login, false);
      expect(sent).toHaveBeenCalledTimes(commands);
      fixture.skipTime(1_000);
      await passed(5, login, false);
      expect(sent.mock.calls.length).toBeGreaterThan(commands);
      expect(sent.mock.calls.length).toBeLessThan(commands + 5);
    } finally {
      redis.resume();
    }
    await untilRedisCounts(login);
  });

  test('while Redis hangs, no other request waits, and the process counts', async () => {
    await start({ scale: 10 / 600 });
    await untilRedisCounts({});
    redis.pause();
    try {
      expect((await ask({ from: '1.1.1.1' })).status).not.toBe(429);
      // Longer than the interval in which counts are added to Redis, which has not confirmed this one.
      await sleep(500);
      const together = await Promise.all(Array.from({ length: 20 }, () => ask({ from: '1.1.1.1' })));
      expect(together.filter(({ status }) => status !== 429)).toHaveLength(9);
    } finally {
      redis.resume();
    }
    await until('Redis has the count', async () => (await redis.admin.get('rate:health:1.1.1.1')) === '10');
    await untilRedisCounts({});
  });
});

test('a subject over its limit does not count as a sign that Redis works', async () => {
  let works = true;
  const log: string[] = [];
  const rlflxIncr = async () => (works ? [2, 60_000] : Promise.reject(new Error('hangs')));
  const logger = createLogger('gateway', 'info', { write: (line) => void log.push(line) });
  const breaker = createBreaker(logger, 'Redis does not count');
  const limiter = createExactLimiter({ rlflxIncr } as never, breaker, 'x', { requests: 1, seconds: 60 });
  expect(await limiter('over')).toBeGreaterThan(0);
  works = false;
  await limiter('other');
  fixture.skipTime(1_000);
  expect(await limiter('over')).toBeGreaterThan(0);
  await limiter('another');
  expect(log).toHaveLength(1);
});

test('a limit is exceeded by the requests of 200 ms at most, and a new window begins empty', async () => {
  await start({ scale: 3_000 / 600 });
  const [began, sent] = [performance.now(), jest.spyOn(fixture.gateway.redis as Redis, 'sendCommand')];
  expect(await passed(200)).toBe(200);
  await until('Redis has the count', async () => (await redis.admin.get('rate:health:1.2.3.4')) === '200');
  // The requests of 200 ms share a command.
  expect(sent.mock.calls.length).toBeLessThan(20 + (performance.now() - began) / 100);
  await redis.admin.set('rate:health:1.2.3.4', '3000', 'KEEPTTL');
  await until('the requests at other gateways count', async () => (await passed(1)) === 0);
  await redis.admin.del('rate:health:1.2.3.4');
  fixture.skipTime(61_000);
  expect(await passed(5)).toBe(5);
});
