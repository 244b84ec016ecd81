import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import type { CacheNode, Fill } from '../connection.ts';
import { createRedisNode } from '../redis/node.ts';
import { protocolScripts } from '../testing/caches.ts';
import { startRedis } from '../../../../test/support/redis-server.ts';
import { useStarted } from '../../../../test/support/use-started.ts';

const KEY = 'webform:12';
const LEASE_MS = 3000;
let redis: Redis;
let node: CacheNode;

afterAll(() => redis?.disconnect());
const server = useStarted(startRedis);
beforeAll(async () => {
  redis = new Redis(server.url);
  const hooks = { onError: () => {}, onHung: () => {}, isCluster: false };
  node = createRedisNode(redis, protocolScripts, hooks);
  await node.incarnation();
});
beforeEach(() => server.admin.flushall());

let tokens = 0;
const read = (view: 'full' | 'summary' = 'full') => node.read(KEY, view, `token-${(tokens += 1)}`, LEASE_MS);

async function takeLease(view: 'full' | 'summary' = 'full'): Promise<string> {
  const reply = await read(view);
  if (reply.status !== 'FILL') throw new Error(`expected a lease, got ${reply.status}`);
  return reply.lease;
}

function fill(lease: string, change: Partial<Fill> = {}): Promise<'STORED' | 'REFUSED'> {
  return node.fill(KEY, { view: 'full', lease, ttlMs: 60_000, version: 7, payload: '{"é":1}', ...change });
}

describe('READ and FILL', () => {
  test("passes an ended lease to the next reader, and refuses its old holder's fill", async () => {
    // The other view keeps the hash.
    await fill(await takeLease('summary'), { view: 'summary' });
    const reply = await node.read(KEY, 'full', 'slow', 0);
    const next = await takeLease();
    expect(reply).toMatchObject({ status: 'FILL' });
    expect(await fill((reply as { lease: string }).lease)).toBe('REFUSED');
    expect(await fill(next)).toBe('STORED');
  });

  test('does not serve an expired payload, even if the other view keeps the hash', async () => {
    await fill(await takeLease('summary'), { view: 'summary' });
    await fill(await takeLease(), { ttlMs: 0 });
    expect(await read()).toMatchObject({ status: 'FILL' });
    expect(await read('summary')).toMatchObject({ status: 'HIT' });
  });

  test('payloads and leases of another incarnation count as absent', async () => {
    await fill(await takeLease());
    await server.admin.hset(KEY, 'full:incarnation', 'an earlier life');
    const lease = await takeLease();
    await server.admin.hset(KEY, 'full:lease', `an-earlier-life/token`);
    expect(await read()).toMatchObject({ status: 'FILL' });
    await server.admin.hset(KEY, 'full:lease', `an-earlier-life/token`);
    expect(await fill(`an-earlier-life/token`)).toBe('REFUSED');
    expect(await fill(lease)).toBe('REFUSED');
  });

  test('expires the hash with its last field', async () => {
    await fill(await takeLease(), { ttlMs: 60_000 });
    await fill(await takeLease('summary'), { view: 'summary', ttlMs: 10_000 });
    expect(await server.admin.pttl(KEY)).toBeGreaterThan(50_000);

    await server.admin.pexpire(KEY, 5000);
    await server.admin.hset(KEY, 'full:expiry', 0);
    await takeLease();
    expect(await server.admin.pttl(KEY)).toBeGreaterThan(LEASE_MS);

    await node.clear(KEY);
    await takeLease();
    expect(await server.admin.pttl(KEY)).toBeLessThanOrEqual(LEASE_MS);
    // Another program makes the hash permanent.
    await server.admin.persist(KEY);
    await takeLease('summary');
    expect(await server.admin.pttl(KEY)).toBeGreaterThan(0);
  });
});

describe("another program's value at our key", () => {
  const foreign: Record<string, () => Promise<unknown>> = {
    'a string': () => server.admin.set(KEY, 'theirs'),
    'a list': () => server.admin.rpush(KEY, 'theirs', 'too'),
    'a hash without our fields': () => server.admin.hset(KEY, { title: 'theirs', body: 'too' }),
  };

  test.each(Object.entries(foreign))(
    '%s: READ deletes it and treats the record as absent',
    async (_, put) => {
      await put();
      const lease = await takeLease();
      expect((await server.admin.hkeys(KEY)).toSorted()).toEqual(['full:lease', 'full:lease_end']);
      expect(await fill(lease)).toBe('STORED');
      expect(await read()).toMatchObject({ status: 'HIT' });
    },
  );

  test.each(Object.entries(foreign))('%s: CLEAR deletes it and counts 1', async (_, put) => {
    await put();
    expect(await node.clear(KEY)).toBe(1);
    expect(await server.admin.exists(KEY)).toBe(0);
  });

  test.each(Object.entries(foreign))('%s put over a lease: FILL is refused', async (_, put) => {
    const lease = await takeLease();
    await server.admin.del(KEY);
    await put();
    expect(await fill(lease)).toBe('REFUSED');
  });
});

test('loads the scripts again if Redis has lost them', async () => {
  await fill(await takeLease());
  await server.admin.script('FLUSH');
  const replies = await Promise.all(Array.from({ length: 20 }, () => read()));
  expect(replies.every(({ status }) => status === 'HIT')).toBe(true);
});

test('a full Redis refuses READ and FILL but still clears', async () => {
  await fill(await takeLease());
  const lease = await takeLease('summary');
  await server.admin.config('SET', 'maxmemory-policy', 'noeviction');
  await server.admin.config('SET', 'maxmemory', '1');
  try {
    await expect(read()).rejects.toMatchObject({
      name: 'CacheRefused',
      message: expect.stringContaining('OOM'),
    });
    await expect(fill(lease, { view: 'summary' })).rejects.toMatchObject({ name: 'CacheRefused' });
    expect(await node.incarnation()).toMatch(/^[0-9a-f]{40}-[0-9a-f]{40}$/);
    expect(await node.clear(KEY)).toBe(1);
  } finally {
    await server.admin.config('SET', 'maxmemory', '0');
  }
});
