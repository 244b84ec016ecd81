import { afterAll, beforeEach, expect, jest, test } from '@jest/globals';
import { Cluster, type Redis } from 'ioredis';
import { createLogger, createRedis, redisTimeoutMs } from '@content-platform/chassis';
import { startCluster } from '../../../test/support/redis-cluster.ts';
import { startRedis } from '../../../test/support/redis-server.ts';
import { useStarted } from '../../../test/support/use-started.ts';
import { until } from '../../../test/support/wait.ts';
import { createLoginThrottle, type LoginThrottle } from './login-throttle.ts';
import { createSharedFailures } from './shared-failures.ts';

/** Waits that do not end while a test runs. */
const backoff = { windowMs: 900_000, shortestMs: 60_000, longestMs: 900_000 };
const account = 'ann@example.com';
const [here, elsewhere] = ['192.0.2.1', '192.0.2.2'];
const unreachable = 'redis://127.0.0.1:1';
const addressKey = `guesses:json:address:${here}`;

let checks = 0;
let log: string[] = [];
const logger = createLogger('auth', 'warn', { write: (line) => void log.push(line) });
const connections: ReturnType<typeof createRedis>[] = [];
// Defined before the hooks of the server, so that no client tries to reconnect.
afterAll(() => connections.forEach((redis) => redis.disconnect()));
const server = useStarted(startRedis);
beforeEach(async () => {
  [checks, log] = [0, []];
  await server.admin.flushall();
});

/** The throttle of another process. The long timeout distinguishes a busy machine from a Redis that hangs. */
async function open(url = server.url, timeoutMs = 10_000): Promise<LoginThrottle> {
  const redis = createRedis(url, logger);
  const options = redis instanceof Cluster ? redis.options.redisOptions! : redis.options;
  options.commandTimeout = timeoutMs;
  connections.push(redis);
  if (url !== unreachable) await until('Redis is connected', async () => (await redis.ping()) === 'PONG');
  return createLoginThrottle(createSharedFailures(redis, logger), backoff);
}

/** 'ok', 'wrong' or 'limited'. */
async function attempt(throttle: LoginThrottle, address: string, ok = false, known = false) {
  const isKnown = async () => known;
  const check = async () => {
    checks += 1;
    return { ok };
  };
  const { outcome } = await throttle
    .run({ account, address, isKnown }, check)
    .catch(() => ({ outcome: undefined }));
  return outcome ? (outcome.ok ? 'ok' : 'wrong') : 'limited';
}
async function failTimes(times: number, throttle: LoginThrottle, address: string) {
  for (let n = 0; n < times; n += 1) expect(await attempt(throttle, address)).toBe('wrong');
}
const countOf = async (key: string) =>
  (JSON.parse((await server.admin.get(key)) ?? '{}') as { count?: number }).count;
const keys = () => server.admin.keys('*');

test('processes count together, under keys that name no account and expire', async () => {
  const [one, other] = [await open(), await open()];
  await failTimes(9, one, here);
  const together = [one, other].flatMap((by) => Array.from({ length: 25 }, () => attempt(by, here)));
  await Promise.all(together);
  expect(checks).toBe(10);
  const all = await keys();
  expect(all).toHaveLength(3);
  expect(all.join(' ')).toMatch(/^(?!.*(ann|example)).*guesses:/);
  for (const key of all) expect(await server.admin.pttl(key)).toBeGreaterThan(840_000);
  expect(await attempt(other, here, true, true)).toBe('ok');
  expect((await keys()).toSorted()).toEqual([addressKey, expect.stringContaining(':everywhere:')]);
});

test('each process counts in memory while Redis is unavailable', async () => {
  const throttle = await open(unreachable);
  await failTimes(10, throttle, here);
  expect(await attempt(throttle, here)).toBe('limited');
  expect(await attempt(throttle, here, true, true)).toBe('ok');
  expect(log.join('')).toContain('this process counts failed logins in memory');
});

test('while Redis hangs at most one attempt a second waits for it, and afterwards Redis counts again', async () => {
  const throttle = await open(server.url, redisTimeoutMs);
  await attempt(throttle, here);
  server.pause();
  try {
    const sent = jest.spyOn(connections.at(-1) as Redis, 'sendCommand');
    for (let n = 0; n < 40; n += 1) expect(await attempt(throttle, elsewhere, true)).toBe('ok');
    expect(sent.mock.calls.length).toBeLessThan(20);
    await failTimes(10, throttle, elsewhere);
    expect(await attempt(throttle, elsewhere)).toBe('limited');
  } finally {
    server.resume();
  }
  await until('Redis counts again', async () => {
    await attempt(throttle, '192.0.2.3');
    return (await keys()).includes('guesses:json:address:192.0.2.3');
  });
});

test('Redis counts after it has lost its scripts, and while its memory is full', async () => {
  const throttle = await open();
  await attempt(throttle, here);
  await server.admin.script('FLUSH');
  await server.admin.config('SET', 'maxmemory', '1');
  try {
    await failTimes(9, throttle, here);
    expect(await attempt(throttle, here)).toBe('limited');
    expect(await countOf(addressKey)).toBe(10);
  } finally {
    await server.admin.config('SET', 'maxmemory', '0');
  }
});

test('a cluster keeps all keys of an attempt in one slot', async () => {
  const cluster = await startCluster({ primaries: 3, replicas: 0 });
  try {
    const throttle = await open(cluster.url);
    // Without the hash tag some of these addresses would be in other slots than the account.
    for (let n = 0; n < 5; n += 1) {
      await failTimes(10, throttle, `192.0.3.${n}`);
      expect(await attempt(throttle, `192.0.3.${n}`)).toBe('limited');
      expect(await attempt(throttle, `192.0.3.${n}`, true, true)).toBe('ok');
    }
    expect(log.join('')).not.toContain('this process counts failed logins in memory');
  } finally {
    connections.pop()!.disconnect();
    await cluster.stop();
  }
});
