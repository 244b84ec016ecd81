import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { startRedis } from '../../test/support/redis-server.ts';
import { until } from '../../test/support/wait.ts';
import { mint } from '../testing/tokens.ts';
import { useTestGateway } from '../testing/use-test-gateway.ts';
import { maxInFlight } from './rate-limit.ts';

const fixture = useTestGateway();
const content = '/api/content/webform/1';
const [first, second] = ['1', '2'].map((sub) => ({ Authorization: `Bearer ${mint({ sub })}` }));
const held: ServerResponse[] = [];
let redis: Awaited<ReturnType<typeof startRedis>>;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

async function start(scale = 1) {
  held.splice(0);
  fixture.upstream.answer = (_request, response) => void held.push(response);
  await fixture.start({ redisUrl: redis.url, trustedProxies: ['127.0.0.0/8'], scale });
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
  await start();
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
  await start();
  const path = '/.well-known/jwks.json';
  await begin(maxInFlight, path);
  expect(await statusOfNext(path)).toBe(429);
  expect(await statusOfNext(path, { 'X-Forwarded-For': '5.6.7.8' })).toBe(200);
});

test('a scale of 0 disables the limit', async () => {
  await start(0);
  await begin(maxInFlight + 40, content, first);
});
