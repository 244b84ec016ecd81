import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { createLogger, createRedis, HttpError, redisTimeoutMs } from '@content-platform/chassis';
import { startRedis, type RedisServer } from '../../../test/support/redis-server.ts';
import { until } from '../../../test/support/wait.ts';
import { createMemoryCounts, type Backoff } from './failure-counts.ts';
import { createGuesses, guessBackoff, type Guesses } from './guesses.ts';
import { createSharedCounts } from './redis-counts.ts';

/** Waits that do not end while a test runs. */
const backoff: Backoff = { window: 900_000, shortest: 60_000, longest: 900_000 };
const [ann, bob] = ['ann@example.com', 'bob@example.com'];
const [here, elsewhere] = ['192.0.2.1', '192.0.2.2'];

let guesses: Guesses;
let checks = 0;
/** Networks that were asked about. */
let asked: string[] = [];
beforeEach(() => {
  guesses = createGuesses(createMemoryCounts(backoff));
  checks = 0;
  asked = [];
});

interface Try {
  right?: boolean;
  known?: boolean;
  by?: Guesses;
}

/** 'in', 'wrong', or the minutes to wait. */
async function guess(
  account: string,
  address: string,
  { right = false, known = false, by = guesses }: Try = {},
) {
  const isKnown = async (network: string) => {
    asked.push(network);
    return known;
  };
  try {
    const { result, limited } = await by.guard({ account, address, isKnown }, async () => {
      checks += 1;
      return right ? 'in' : undefined;
    });
    if (limited) throw limited;
    return result ?? 'wrong';
  } catch (error) {
    if (error instanceof HttpError && error.error === 'rate_limited')
      return Math.ceil(Number(error.headers['Retry-After']) / 60);
    throw error;
  }
}
async function guessTimes(times: number, account: string, address: string, more: Try = {}) {
  for (let n = 0; n < times; n += 1) expect(await guess(account, address, more)).toBe('wrong');
}

test('the times are those that are promised', () => {
  expect(guessBackoff).toEqual({ window: 900_000, shortest: 1_000, longest: 900_000 });
});

test('after 10 failures one has to wait, with the right password too', async () => {
  await guessTimes(10, ann, here);
  expect(await guess(ann, here)).toBe(1);
  expect(await guess(ann, here, { right: true })).toBe(1);
  expect(checks).toBe(10);
});

test('other accounts there, and the account elsewhere, do not have to', async () => {
  await guessTimes(10, ann, here);
  expect(await guess(bob, here, { right: true })).toBe('in');
  expect(await guess(ann, elsewhere, { right: true })).toBe('in');
});

test('50 that come together after 9 failures are one check', async () => {
  await guessTimes(9, ann, here);
  await Promise.all(Array.from({ length: 50 }, () => guess(ann, here)));
  expect(checks).toBe(10);
});

test('a right password forgets the failures of the account there', async () => {
  await guessTimes(9, ann, here);
  expect(await guess(ann, here, { right: true })).toBe('in');
  await guessTimes(10, ann, here);
});

test('after 200 failures from an address it has to wait with every account; right passwords do not count', async () => {
  for (let n = 0; n < 199; n += 1) expect(await guess(`${n}@example.com`, here)).toBe('wrong');
  for (let n = 0; n < 5; n += 1) expect(await guess(bob, here, { right: true })).toBe('in');
  expect(await guess(ann, here)).toBe('wrong');
  expect(await guess(bob, here, { right: true })).toBe(1);
  expect(await guess(bob, elsewhere, { right: true })).toBe('in');
});

test('a right password forgets no failure of other accounts there', async () => {
  for (let n = 0; n < 200; n += 1) {
    expect(await guess(`${n}@example.com`, here)).toBe('wrong');
    if (n % 20 === 0) expect(await guess(bob, here, { right: true })).toBe('in');
  }
  expect(await guess(bob, here)).toBe(1);
});

test.each([
  ['2001:db8:1:2::1', '2001:db8:1:2:ffff::2', '2001:db8:1:3::1'],
  ['192.0.2.1', '::ffff:192.0.2.1', '::ffff:192.0.2.2'],
])('%s and %s are one, %s is not', async (one, other, another) => {
  await guessTimes(10, ann, one);
  expect(await guess(ann, other)).toBe(1);
  expect(await guess(ann, another)).toBe('wrong');
});

test('a check that fails is no failure of the guesser', async () => {
  const isKnown = async () => false;
  for (let n = 0; n < 250; n += 1) {
    const check = () => Promise.reject(new Error('the database is away'));
    await expect(guesses.guard({ account: ann, address: here, isKnown }, check)).rejects.toThrow('away');
  }
  await guessTimes(10, ann, here);
});

describe('an address with a session of the account', () => {
  test('is asked for only when one has to wait', async () => {
    await guessTimes(10, ann, '2001:db8:1:2::1');
    expect(asked).toEqual([]);
    await guess(ann, '2001:db8:1:2::1');
    expect(asked).toEqual(['2001:db8:1:2::/64']);
  });

  test('gets in with the right password, and only with that', async () => {
    await guessTimes(10, ann, here);
    expect(await guess(ann, here, { known: true })).toBe(1);
    expect(await guess(ann, here, { known: true, right: true })).toBe('in');
    await guessTimes(10, ann, here);
  });

  test('gets in when others have failed too often from there', async () => {
    for (let n = 0; n < 200; n += 1) await guess(`${n}@example.com`, here);
    expect(await guess(ann, here, { known: true, right: true })).toBe('in');
    expect(await guess(bob, here, { right: true })).toBe(1);
  });

  test('cannot guess without end: after 100 failures more it has to wait, too', async () => {
    await guessTimes(10, ann, here);
    for (let n = 0; n < 100; n += 1) expect(await guess(ann, here, { known: true })).toBe(1);
    expect(checks).toBe(110);
    expect(await guess(ann, here, { known: true, right: true })).toBe(1);
    expect(checks).toBe(110);
  });

  test('has its failures forgotten by the right password', async () => {
    await guessTimes(10, ann, here);
    for (let n = 0; n < 99; n += 1) await guess(ann, here, { known: true });
    expect(await guess(ann, here, { known: true, right: true })).toBe('in');
    await guessTimes(10, ann, here);
    await guess(ann, here, { known: true });
    expect(await guess(ann, here, { known: true, right: true })).toBe('in');
  });
});

describe('counted in Redis', () => {
  let server: RedisServer;
  const log: string[] = [];
  const logger = createLogger('auth', 'warn', { write: (line) => void log.push(line) });
  const connections: ReturnType<typeof createRedis>[] = [];
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(async () => {
    for (const redis of connections) redis.disconnect();
    await server.stop();
  });
  beforeEach(async () => void (await server.admin.flushall()));

  /** One process more. */
  async function open(url = server.url, timeout = 10_000): Promise<Guesses> {
    const redis = createRedis(url, logger);
    // A busy machine is no Redis that hangs.
    (redis as Redis).options.commandTimeout = timeout;
    connections.push(redis);
    if (url === server.url) await until('Redis is connected', () => redis.status === 'ready');
    return createGuesses(createSharedCounts(redis, logger, backoff));
  }
  const keys = () => server.admin.keys('*');

  test('processes count together, under keys that name no account and go away', async () => {
    const [one, other] = [await open(), await open()];
    await guessTimes(9, ann, here, { by: one });
    await Promise.all(Array.from({ length: 50 }, () => guess(ann, here, { by: other })));
    expect(checks).toBe(10);
    expect(await guess(ann, here, { by: one })).toBe(1);
    const all = await keys();
    expect(all).toHaveLength(2);
    expect(all.join(' ')).toMatch(/^(?!.*(ann|example)).*guesses:/);
    for (const key of all) expect(await server.admin.pttl(key)).toBeGreaterThan(0);
    expect(await guess(ann, here, { by: other, known: true, right: true })).toBe('in');
    expect(await keys()).toEqual([`guesses:address:${here}`]);
  });

  test('who gets in at once leaves nothing behind', async () => {
    expect(await guess(ann, here, { by: await open(), right: true })).toBe('in');
    expect(await keys()).toEqual([]);
  });

  test('Redis away: counted here', async () => {
    const by = await open('redis://127.0.0.1:1');
    await guessTimes(10, ann, here, { by });
    expect(await guess(ann, here, { by })).toBe(1);
    expect(await guess(ann, here, { by, known: true, right: true })).toBe('in');
    expect(log.join('')).toContain('guesses are counted in this process');
  });

  test('Redis hangs: counted here, and no more than one login a second waits for it; afterwards it counts again', async () => {
    const by = await open(server.url, redisTimeoutMs);
    await guess(ann, here, { by });
    server.pause();
    try {
      const start = performance.now();
      for (let n = 0; n < 40; n += 1) expect(await guess(ann, elsewhere, { by, right: true })).toBe('in');
      // If all waited it would be 40 timeouts and more.
      expect(performance.now() - start).toBeLessThan(20 * redisTimeoutMs);
      await guessTimes(10, bob, elsewhere, { by });
      expect(await guess(bob, elsewhere, { by })).toBe(1);
    } finally {
      server.resume();
    }
    await until('Redis counts again', async () => {
      await guess(bob, '192.0.2.3', { by, right: false });
      return (await keys()).includes('guesses:address:192.0.2.3');
    });
  });

  test('Redis forgets its scripts: it counts all the same', async () => {
    const by = await open();
    await guess(ann, here, { by });
    await server.admin.script('FLUSH');
    await guessTimes(9, ann, here, { by });
    expect(await guess(ann, here, { by })).toBe(1);
    expect(await server.admin.hget(`guesses:address:${here}`, 'failures')).toBe('10');
  });

  test('full memory stops no counting', async () => {
    const by = await open();
    await server.admin.config('SET', 'maxmemory', '1');
    try {
      await guessTimes(10, ann, here, { by });
      expect(await server.admin.hget(`guesses:address:${here}`, 'failures')).toBe('10');
    } finally {
      await server.admin.config('SET', 'maxmemory', '0');
    }
  });
});

test('the wait is told in whole seconds, in the envelope and its header', async () => {
  const isKnown = async () => false;
  await guessTimes(10, ann, here);
  const check = async () => undefined;
  await expect(guesses.guard({ account: ann, address: here, isKnown }, check)).rejects.toMatchObject({
    status: 429,
    error: 'rate_limited',
    headers: { 'Retry-After': expect.stringMatching(/^(60|[1-5]\d)$/) as unknown },
  });
});
