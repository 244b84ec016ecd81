import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { CacheNode } from '../connection.ts';
import type { ContentCache } from '../index.ts';
import { createRecordCache, tooLarge, type CacheRead, type LoadedRecord } from './record-cache.ts';
import { closedAfterEach, whileRefusing } from '../testing/closed-after-each.ts';
import { heldLoad, loadNothing, loadVersion, recordOf } from '../testing/loaders.ts';
import { startRedis } from '../../../../test/support/redis-server.ts';
import { useStarted } from '../../../../test/support/use-started.ts';
import { until } from '../../../../test/support/wait.ts';

afterEach(() => void jest.restoreAllMocks());
const started = closedAfterEach();
const redis = useStarted(startRedis);
let cache: ContentCache;

beforeEach(async () => {
  await redis.admin.flushall();
  cache = await started.cache(redis.url);
});

/** Creates a record cache with changed commands of the node. */
async function cacheWith(change: (node: CacheNode) => Partial<CacheNode>) {
  const connection = await started.connection(redis.url);
  function forReading(key: string): CacheNode {
    const node = connection.forReading(key);
    return { ...node, ...change(node) };
  }
  return createRecordCache({ ttlMs: 60_000, negativeTtlMs: 60_000, connection: { forReading } });
}

/** Even if this process is busy, no reader then waits so long that it may read the database. */
const stopClock = () => void jest.spyOn(performance, 'now').mockReturnValue(performance.now());
const fieldsOf = (key: string) => redis.admin.hgetall(key);
/** A reader takes the lease and keeps it until release(), as if new holders kept taking it. */
async function holdLease(): Promise<() => Promise<unknown>> {
  const { load, begun, release } = heldLoad(1);
  const holder = cache.read('webform', 12, 'full', load);
  await begun;
  await redis.admin.hset('webform:12', 'full:lease_end', Date.now() + 3_600_000);
  await redis.admin.persist('webform:12');
  return () => {
    release();
    return holder;
  };
}
const ttlOf = async (key: string) => Number((await fieldsOf(key))['full:expiry']) - Date.now();

test('caches views, records and models separately', async () => {
  await cache.read('webform', 12, 'full', loadVersion(1));
  for (const [model, id, view] of [
    ['webform', 12, 'summary'],
    ['webform', 1, 'full'],
    ['pathway', 12, 'full'],
  ] as const)
    expect(await cache.read(model, id, view, loadVersion(2))).toMatchObject({ outcome: 'miss' });
  const { outcome, record } = await cache.read('webform', 12, 'full', loadNothing);
  expect([outcome, record?.version]).toEqual(['hit', 1]);
});

test('caches absence for a shorter time, and counts it as a cached view', async () => {
  const first = await cache.read('webform', 404, 'full', async () => null);
  expect(first).toEqual({ outcome: 'miss', record: null });
  expect(await cache.read('webform', 404, 'full', loadNothing)).toEqual({ outcome: 'hit', record: null });
  expect(await ttlOf('webform:404')).toBeLessThanOrEqual(33_000);
  expect(await cache.clearRecord('webform', 404)).toBe(1);
  expect(await cache.read('webform', 404, 'full', loadVersion(1))).toMatchObject({ outcome: 'miss' });
});

test('spreads the time to live by 10 % to both sides', async () => {
  const ids = Array.from({ length: 200 }, (_, index) => index + 1);
  await Promise.all(ids.map((id) => cache.read('webform', id, 'full', loadVersion(1))));
  const ttls = await Promise.all(ids.map((id) => ttlOf(`webform:${id}`)));
  expect(Math.max(...ttls)).toBeLessThanOrEqual(330_000);
  expect(Math.max(...ttls)).toBeGreaterThan(310_000);
  // Seconds may have passed since the fills.
  expect(Math.min(...ttls)).toBeLessThan(290_000);
  expect(Math.min(...ttls)).toBeGreaterThan(255_000);
});

test('1,000 readers of one cold record cause one database read', async () => {
  stopClock();
  const load = loadVersion(1, 10);
  const all = Array.from({ length: 1000 }, () => cache.read('webform', 12, 'full', load));
  const reads = await Promise.all(all);
  expect(load.calls).toBe(1);
  expect(reads.filter(({ outcome }) => outcome === 'miss')).toHaveLength(1);
  expect(reads.every(({ record }) => record?.version === 1)).toBe(true);
});

const ids = Array.from({ length: 100 }, (_, index) => index + 1);
test('limits the payloads that a clear waits behind, and the wait for a slow Redis', async () => {
  let delayMs = 0;
  const inFlight = { read: 0, fill: 0 };
  const most = { read: 0, fill: 0 };
  const counted = <T>(kind: 'read' | 'fill', reply: Promise<T>): Promise<T> => {
    most[kind] = Math.max(most[kind], (inFlight[kind] += 1));
    return reply.finally(() => (inFlight[kind] -= 1));
  };
  const records = await cacheWith((node) => ({
    read: (...question) =>
      counted(
        'read',
        sleep(delayMs).then(() => node.read(...question)),
      ),
    fill: (...entry) => counted('fill', node.fill(...entry)),
  }));
  await Promise.all(ids.map((id) => records.read('webform', id, 'full', loadVersion(1))));
  delayMs = 200;
  const reads = await Promise.all(ids.map((id) => records.read('webform', id, 'full', loadVersion(1))));
  expect([reads[0]!.outcome, reads.at(-1)!.outcome]).toEqual(['hit', 'bypass']);
  expect(Math.max(most.read, most.fill)).toBeLessThanOrEqual(8);
});

test('reads 100 records with one round trip, one statement, and one round trip for the fills', async () => {
  let steps: string[] = [];
  const noted = async <T>(command: string, reply: Promise<T>): Promise<T> => {
    steps.push(`${command} sent`);
    return reply.finally(() => steps.push(`${command} replied`));
  };
  const records = await cacheWith((node) => ({
    read: (...question) => noted('READ', node.read(...question)),
    fill: (...entry) => noted('FILL', node.fill(...entry)),
  }));
  const load = async (some: number[]) => {
    steps.push(`${some.length} loaded`);
    return new Map(some.filter((id) => id > 10).map((id) => [id, recordOf(id)]));
  };
  for (const id of ids.slice(60)) await cache.read('webform', id, 'full', loadVersion(id));

  const reads = await records.readMany('webform', ids, 'full', load);
  expect(reads.map(({ record }) => record?.version)).toEqual(ids.map((id) => (id > 10 ? id : undefined)));
  expect(reads.filter(({ outcome }) => outcome === 'hit')).toHaveLength(40);
  const inTurn = (...expected: [number, string][]) =>
    expected.flatMap(([count, step]) => Array.from({ length: count }, () => step));
  const lookUp = inTurn([100, 'READ sent'], [100, 'READ replied']);
  expect(steps).toEqual([...lookUp, '60 loaded', ...inTurn([60, 'FILL sent'], [60, 'FILL replied'])]);

  steps = [];
  expect((await records.readMany('webform', ids, 'full', load)).map(({ record }) => record)).toEqual(
    reads.map(({ record }) => record),
  );
  expect(steps).toEqual(lookUp);
});

test('a read of several records loads those that it waited for with few statements', async () => {
  const ids = Array.from({ length: 20 }, (_, index) => index + 1);
  const [held, begun] = [Promise.withResolvers<Map<number, LoadedRecord>>(), Promise.withResolvers<void>()];
  const holder = cache.readMany('webform', ids, 'full', () => {
    begun.resolve();
    return held.promise;
  });
  await begun.promise;
  stopClock();
  const statements: number[][] = [];
  let running = 0;
  const waiting = cache.readMany('webform', ids, 'full', async (some) => {
    statements.push(some);
    expect((running += 1)).toBe(1);
    await sleep(50);
    running -= 1;
    return new Map(some.map((id) => [id, recordOf(2)]));
  });
  await until('the leases are cleared', async () => (await cache.clearPattern('webform')) === 0);
  expect((await waiting).every(({ record }) => record?.version === 2)).toBe(true);
  expect(statements.flat().toSorted((a, b) => a - b)).toEqual(ids);
  expect(statements.length).toBeLessThan(10);
  held.resolve(new Map());
  await holder;
  const again = await cache.readMany('webform', ids, 'full', loadNothing as never);
  expect(again.every(({ outcome, record }) => outcome === 'hit' && record)).toBe(true);
});

test('a read of several records bypasses a refusing Redis with one statement', async () => {
  await whileRefusing(redis, async () => {
    const load = async (ids: number[]) => new Map(ids.map((id) => [id, recordOf(id)]));
    const reads = await cache.readMany('webform', [3, 1], 'full', load);
    expect(reads).toMatchObject([3, 1].map((version) => ({ outcome: 'bypass', record: { version } })));
  });
});

test('serves no reader with a READ that was sent before the reader arrived', async () => {
  let waits = 0;
  const [hit, handOver] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  // Delays its first hit, the reply to its waiting readers.
  const slow = await cacheWith((node) => ({
    async read(...question) {
      const reply = await node.read(...question);
      if (reply.status === 'WAIT') waits += 1;
      if (reply.status === 'HIT') {
        hit.resolve();
        await handOver.promise;
      }
      return reply;
    },
  }));

  /** One reader fills with `version`; another reader with the slow cache waits for the fill. */
  async function fillWhileAnotherWaits(version: number): Promise<{ waiting: Promise<CacheRead> }> {
    const { load, begun, release } = heldLoad(version);
    const filling = cache.read('webform', 12, 'full', load);
    await begun;
    const before = waits;
    const waiting = slow.read('webform', 12, 'full', loadNothing);
    await until('the reader waits for the fill', () => waits > before);
    release();
    await filling;
    return { waiting };
  }

  stopClock();
  const { waiting: early } = await fillWhileAnotherWaits(1);
  await hit.promise;
  await cache.clearRecord('webform', 12);
  const { waiting: late } = await fillWhileAnotherWaits(2);
  handOver.resolve();
  expect((await early).record?.version).toBe(1);
  expect((await late).record?.version).toBe(2);
});

test('during a slow fill at most two waiting readers read the database; the others get the fill', async () => {
  const [release, permit] = [await holdLease(), Promise.withResolvers<void>()];
  // The clock stops before a reader has waited so long that it needs no permit.
  const [now, end] = [performance.now.bind(performance), performance.now() + 2_900];
  jest.spyOn(performance, 'now').mockImplementation(() => Math.min(now(), end));
  let loads = 0;
  const reads = Array.from({ length: 100 }, () =>
    cache.read('webform', 12, 'full', async () => {
      loads += 1;
      await permit.promise;
      return recordOf(1);
    }),
  );
  await until('two readers have permits', () => loads === 2);
  // All of them may read the database by now.
  await sleep(300);
  expect(loads).toBe(2);
  await release();
  permit.resolve();
  const outcomes = (await Promise.all(reads)).map(({ outcome }) => outcome);
  expect(outcomes.filter((outcome) => outcome === 'hit')).toHaveLength(98);
  expect(loads).toBe(2);
});

test('passes an ended load permit to the next reader', async () => {
  const release = await holdLease();
  const load = loadVersion(1, 20);
  // They wait longest, so they get the first permits.
  const failed = [1, 2].map(() =>
    expect(cache.read('webform', 12, 'full', loadNothing)).rejects.toThrow('the database was read'),
  );
  await Promise.all([...failed, ...Array.from({ length: 6 }, () => cache.read('webform', 12, 'full', load))]);
  expect(load.calls).toBe(6);
  // None of them filled.
  expect(Object.keys(await fieldsOf('webform:12')).toSorted()).toEqual(['full:lease', 'full:lease_end']);
  await release();
});

test('a reader without a permit reads the database once the lease must have ended', async () => {
  const release = await holdLease();
  let permits = 0;
  const loaded = Promise.withResolvers<null>();
  const permitted = [1, 2].map(() =>
    cache.read('webform', 12, 'full', () => {
      permits += 1;
      return loaded.promise;
    }),
  );
  await until('both have their permits', () => permits === 2);
  expect(await cache.read('webform', 12, 'full', loadVersion(1))).toMatchObject({ outcome: 'miss' });
  loaded.resolve(null);
  await Promise.all([release(), ...permitted]);
});

test('a waiting reader bypasses the cache when Redis begins to refuse', async () => {
  const release = await holdLease();
  const waiting = cache.read('webform', 12, 'full', loadVersion(1));
  await whileRefusing(redis, async () => {
    expect(await waiting).toMatchObject({ outcome: 'bypass', record: { version: 1 } });
    // Its fill is refused.
    expect(await release()).toMatchObject({ outcome: 'miss', record: { version: 1 } });
  });
});

test('one waiting reader fills when the lease was cleared', async () => {
  const release = await holdLease();
  stopClock();
  const load = loadVersion(2, 20);
  const waiting = Array.from({ length: 10 }, () => cache.read('webform', 12, 'full', load));
  await cache.clearRecord('webform', 12);
  const reads = await Promise.all(waiting);
  expect(load.calls).toBe(1);
  expect(reads.filter(({ outcome }) => outcome === 'hit')).toHaveLength(9);
  await release();
});

// 131,072 times é and the quotes: less than the limit in characters, two over it in bytes.
const large = { version: 1, payload: `"${'é'.repeat(131_072)}"` };
const largest = { version: 1, payload: `"${'é'.repeat(131_071)}"` };

test('caches up to 256 KB', async () => {
  await cache.read('webform', 12, 'full', async () => largest);
  expect(await cache.read('webform', 12, 'full', loadNothing)).toEqual({ outcome: 'hit', record: largest });

  const load = async () => large;
  for (let reads = 0; reads < 3; reads += 1)
    expect(await cache.read('webform', 13, 'full', load)).toEqual({ outcome: 'miss', record: large });
  expect(await redis.admin.memory('USAGE', 'webform:13')).toBeLessThan(2_000);
  expect(Object.keys(await fieldsOf('webform:13'))).not.toContain('full:lease');
  await cache.clearRecord('webform', 13);
  await cache.read('webform', 13, 'full', loadVersion(2));
  expect(await cache.read('webform', 13, 'full', loadNothing)).toMatchObject({ outcome: 'hit' });
});

test('ends the lease of a record that was left out, and the next read caches it', async () => {
  const loadMany = async () => new Map([[12, tooLarge]]);
  await cache.readMany('webform', [12], 'full', loadMany);
  expect(await cache.read('webform', 12, 'full', loadVersion(1))).toMatchObject({ outcome: 'miss' });
  expect(await cache.read('webform', 12, 'full', loadNothing)).toMatchObject({ outcome: 'hit' });
});

test('readers of a record that is too large to cache do not wait for each other', async () => {
  await cache.read('webform', 12, 'full', async () => large);
  const together = Promise.withResolvers<void>();
  let loads = 0;
  const load = async () => {
    loads += 1;
    if (loads === 20) together.resolve();
    await together.promise;
    return large;
  };
  // Each load ends only when all have begun.
  await Promise.all(Array.from({ length: 20 }, () => cache.read('webform', 12, 'full', load)));
});
