import { expect, test } from '@jest/globals';
import { setImmediate } from 'node:timers/promises';
import type { ContentCache } from '../index.ts';
import type { ProtocolScripts } from '../connection.ts';
import {
  brokenScripts,
  joiningLoads,
  loadingAllAtOnce,
  readingDatabaseFirst,
} from '../testing/broken-versions.ts';
import { protocolScripts } from '../testing/caches.ts';
import { closedAfterEach, untilUsable } from '../testing/closed-after-each.ts';
import { heldLoad, loadVersion, recordOf } from '../testing/loaders.ts';
import type { RaceCache } from '../testing/race.ts';
import { follow } from '../../../../test/support/redis-replication.ts';
import type { RedisServer } from '../../../../test/support/redis-server.ts';
import { startProxy } from '../../../../test/support/proxy.ts';
import { until } from '../../../../test/support/wait.ts';

/**
 * Deterministic sequences. In each the record has version 1, becomes version 2, and is cleared. The read after the
 * acknowledgement must return 2. Without the sequence's guard it returns 1.
 */

const started = closedAfterEach();
const { server } = started;
const cacheOn = ({ url }: RedisServer, scripts: ProtocolScripts) => started.cache(url, { scripts });

async function readVersion(cache: RaceCache, inDatabase: number): Promise<number | undefined> {
  return (await cache.read('webform', 12, 'full', loadVersion(inDatabase))).record?.version;
}

async function promote(replica: RedisServer): Promise<void> {
  await replica.admin.replicaof('NO', 'ONE');
}

/** A reader has loaded version 1 and fills late; meanwhile the record is cleared. */
async function clearDuringLoad(scripts: ProtocolScripts, reader = (cache: RaceCache) => cache) {
  const redis = await server();
  const slow = reader(await cacheOn(redis, scripts));
  const other = await cacheOn(redis, scripts);
  await slow.read('webform', 12, 'full', async () => {
    await other.clearRecord('webform', 12);
    return recordOf(1);
  });
  return readVersion(other, 2);
}

test("refuses a slow reader's fill after the record was cleared", async () => {
  expect(await clearDuringLoad(protocolScripts)).toBe(2);
  expect(await clearDuringLoad(brokenScripts.fillWithoutLeaseCheck)).toBe(1);
  expect(await clearDuringLoad(brokenScripts.clearThatLeavesTheLease)).toBe(1);
});

test('detects a reader that loads the record before it holds the lease', async () => {
  expect(await clearDuringLoad(protocolScripts, readingDatabaseFirst)).toBe(1);
});

test('a read after a clear does not share a load that began before the clear', async () => {
  const sequence = async (reader: (cache: RaceCache) => RaceCache) => {
    const redis = await server();
    const raced = await cacheOn(redis, protocolScripts);
    const cache = reader(raced);
    const { load, begun, release } = heldLoad(1);
    const first = cache.read('webform', 12, 'full', load);
    await begun;
    await cache.clearRecord('webform', 12);
    const second = readVersion(cache, 2);
    await until('a second lease is taken', async () => (await redis.admin.exists('webform:12')) === 1);
    // Its reply comes before that of a later command; then the reader begins its load.
    await raced.memory();
    await setImmediate();
    release();
    await first;
    return second;
  };
  expect(await sequence((cache) => cache)).toBe(2);
  expect(await sequence(joiningLoads)).toBe(1);
});

/** A reader of two records has loaded version 1 and fills late; meanwhile one of the records is cleared. */
async function clearDuringBatch(reader = (cache: RaceCache) => cache): Promise<unknown> {
  const redis = await server();
  const slow = reader(await cacheOn(redis, protocolScripts));
  const other = await cacheOn(redis, protocolScripts);
  await slow.readMany('webform', [11, 12], 'full', async (ids) => {
    await other.clearRecord('webform', 12);
    return new Map(ids.map((id) => [id, recordOf(1)]));
  });
  expect(await other.read('webform', 11, 'full', loadVersion(2))).toMatchObject({ outcome: 'hit' });
  return readVersion(other, 2);
}

test("refuses a slow batch reader's fill of the cleared record, and of no other", async () => {
  expect(await clearDuringBatch()).toBe(2);
  expect(await clearDuringBatch(readingDatabaseFirst)).toBe(1);
});

/** A reader of two records waits for another reader's fill of one of them, which a clear refuses. */
async function clearWhileBatchWaits(reader = (cache: RaceCache) => cache): Promise<unknown> {
  const redis = await server();
  const other = await cacheOn(redis, protocolScripts);
  const batch = reader(await cacheOn(redis, protocolScripts));
  const held = heldLoad(1);
  const first = other.read('webform', 12, 'full', held.load);
  await held.begun;
  let inDatabase = 1;
  await batch.readMany('webform', [11, 12], 'full', async (ids) => {
    const records = new Map(ids.map((id) => [id, recordOf(inDatabase)]));
    if (inDatabase === 1) {
      inDatabase = 2;
      await other.clearRecord('webform', 12);
    }
    return records;
  });
  held.release();
  await first;
  return readVersion(other, 2);
}

test('a batch reader loads a record again that was cleared while the reader waited for it', async () => {
  expect(await clearWhileBatchWaits()).toBe(2);
  expect(await clearWhileBatchWaits(loadingAllAtOnce)).toBe(1);
});

/** Redis restarts from a snapshot from before the clear. */
async function restartFromOldFile(scripts: ProtocolScripts): Promise<unknown> {
  const redis = await server();
  const cache = await cacheOn(redis, scripts);
  await readVersion(cache, 1);
  await redis.admin.save();
  // While Redis saved, the cache may have disconnected.
  await untilUsable(cache);
  expect(await cache.clearRecord('webform', 12)).toBe(1);
  await redis.kill();
  await until('the loss is detected', () => cache.state === 'unavailable');
  await redis.restart();
  await untilUsable(cache);
  expect(await redis.admin.hexists('webform:12', 'full:payload')).toBe(1);
  const version = await readVersion(cache, 2);
  expect(await cache.read('webform', 12, 'full', loadVersion(3))).toMatchObject({ outcome: 'hit' });
  return version;
}

test('a read after a restart from an old snapshot does not return the version before the clear', async () => {
  expect(await restartFromOldFile(protocolScripts)).toBe(2);
  expect(await restartFromOldFile(brokenScripts.withoutIncarnation)).toBe(1);
});

/** A failover from A to B and back without a restart. The second failover loses the clear. */
async function promotionThereAndBack(scripts: ProtocolScripts): Promise<unknown> {
  const [a, b] = [await server(), await server()];
  const cacheOfA = await cacheOn(a, scripts);
  await readVersion(cacheOfA, 1);
  await follow(b, a);

  await promote(b);
  await follow(a, b);
  await a.admin.replicaof('127.0.0.1', 1);
  const cacheOfB = await cacheOn(b, scripts);
  expect(await cacheOfB.clearRecord('webform', 12)).toBe(1);

  await promote(a);
  await untilUsable(cacheOfA);
  expect(await a.admin.hexists('webform:12', 'full:payload')).toBe(1);
  return readVersion(cacheOfA, 2);
}

test('a read after two failovers does not return the version before a clear that they lost', async () => {
  expect(await promotionThereAndBack(protocolScripts)).toBe(2);
  expect(await promotionThereAndBack(brokenScripts.runIdOnly)).toBe(1);
});

/** A is the old primary and does not know that B has taken over. A needs a replica to accept writes. */
async function cutOffPrimary(): Promise<{ a: RedisServer; b: RedisServer; takeOver: () => Promise<void> }> {
  const [a, b] = [await server(), await server()];
  await follow(b, a);
  await a.admin.config('SET', 'min-replicas-to-write', '1');
  const takeOver = async () => {
    await promote(b);
    await until('A is cut off', async () => {
      const answer = await a.admin.set('probe', '').catch((error: Error) => error.message);
      return answer?.startsWith('NOREPLICAS') ?? false;
    });
  };
  return { a, b, takeOver };
}

/** A client still reads from A; the clear goes to B. */
async function readFromCutOffPrimary(scripts: ProtocolScripts): Promise<unknown> {
  const { a, b, takeOver } = await cutOffPrimary();
  const cacheOfA = await cacheOn(a, scripts);
  await readVersion(cacheOfA, 1);
  await takeOver();
  await (await cacheOn(b, scripts)).clearRecord('webform', 12);
  expect(cacheOfA.state).toBe('usable');
  return readVersion(cacheOfA, 2);
}

test('a read from a primary that was cut off does not return the version before the clear', async () => {
  expect(await readFromCutOffPrimary(protocolScripts)).toBe(2);
  expect(await readFromCutOffPrimary(brokenScripts.withoutHeader)).toBe(1);
});

/** The clear goes to A, but the record is cached on B. */
async function clearPatternOnCutOffPrimary(scripts: ProtocolScripts): Promise<unknown> {
  const { a, b, takeOver } = await cutOffPrimary();
  const cacheOfA = await cacheOn(a, scripts);
  await takeOver();
  const cacheOfB = await cacheOn(b, scripts);
  await readVersion(cacheOfB, 1);
  const acknowledged = await cacheOfA.clearPattern('webform').catch((error: Error) => error.name);
  return { acknowledged, readThen: await readVersion(cacheOfB, 2) };
}

test('refuses to clear a model on a primary that was cut off', async () => {
  expect(await clearPatternOnCutOffPrimary(protocolScripts)).toEqual({
    acknowledged: 'CacheRefused',
    readThen: 1,
  });
  expect(await clearPatternOnCutOffPrimary(brokenScripts.sweepWithoutChecks)).toEqual({
    acknowledged: 0,
    readThen: 1,
  });
});

const onReplica: Record<string, (cache: ContentCache) => Promise<unknown>> = {
  'a clear': (cache) => cache.clearRecord('webform', 12),
  'a clear of a model': (cache) => cache.clearPattern('webform'),
  'a read': async (cache) => {
    throw (await cache.read('webform', 12, 'full', loadVersion(2))).reason;
  },
};

test.each(Object.entries(onReplica))(
  'a primary that became a replica refuses %s, and the new primary is looked up',
  async (_, ask) => {
    const [primary, replica] = [await server(), await server()];
    const proxy = await startProxy(new URL(replica.url));
    started.onEnd(proxy.close);
    const cache = await started.cache(proxy.url);
    await readVersion(cache, 1);
    // Asks before the replica is in step: until then, a ping of the cache might find it first.
    await replica.admin.replicaof('127.0.0.1', primary.port);
    await expect(ask(cache)).rejects.toMatchObject({ name: 'CacheRefused' });
    await until('the connection is closed', () => cache.state === 'unavailable');
    expect(await cache.read('webform', 12, 'full', loadVersion(2))).toMatchObject({ outcome: 'bypass' });

    proxy.redirect(new URL(primary.url));
    await untilUsable(cache);
    expect(await cache.read('webform', 12, 'full', loadVersion(2))).toMatchObject({ outcome: 'miss' });
    expect(await primary.admin.exists('webform:12')).toBe(1);
  },
);
