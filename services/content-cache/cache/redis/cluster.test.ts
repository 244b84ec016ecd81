import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { createCacheClearer } from '../protocol/cache-clearer.ts';
import type { CacheNode } from '../connection.ts';
import type { ContentCache, ContentCacheOptions } from '../index.ts';
import { recordKey } from '../protocol/record-cache.ts';
import { slotOf } from './slot-map.ts';
import { protocolScripts } from '../testing/caches.ts';
import { closedAfterEach, untilUsable } from '../testing/closed-after-each.ts';
import { loadNothing, loadVersion } from '../testing/loaders.ts';
import { startCluster, type ClusterMember } from '../../../../test/support/redis-cluster.ts';
import { useStarted } from '../../../../test/support/use-started.ts';
import { until } from '../../../../test/support/wait.ts';

const cluster = useStarted(() => startCluster({ replicas: 0 }));
let a: ClusterMember, b: ClusterMember, c: ClusterMember;
const started = closedAfterEach();
/** A record of each primary; key and slot of the first record. */
let idAtA: number, idAtB: number, idAtC: number, key: string, slot: number;

beforeAll(async () => {
  [a, b, c] = cluster.primaries as [ClusterMember, ClusterMember, ClusterMember];
  const ids = Array.from({ length: 100 }, (_, index) => index + 1);
  const owners = await Promise.all(ids.map((id) => cluster.ownerOf(recordKey('webform', id))));
  [idAtA, idAtB, idAtC] = [a, b, c].map((node) => ids[owners.indexOf(node)]!) as [number, number, number];
  key = recordKey('webform', idAtA);
  slot = slotOf(key);
});
beforeEach(async () => {
  await Promise.all(cluster.primaries.map(({ admin }) => admin.flushall()));
});

const start = (options?: Partial<ContentCacheOptions>) => started.cache(cluster.url, options);
const versionOf = async (cache: ContentCache, id: number, inDatabase: number) =>
  (await cache.read('webform', id, 'full', loadVersion(inDatabase))).record?.version;
const count = async () =>
  (await Promise.all(cluster.primaries.map(({ admin }) => admin.dbsize()))).reduce((sum, one) => sum + one);

test('computes the same slots as the servers', async () => {
  const keys = ['webform:1', 'pathway:9007199254740991', 'accesscode:20', 'condition:3', ''];
  for (const key of keys) expect(slotOf(key)).toBe(await cluster.slotOf(key));
});

test('caches records on the owners of their keys, and clears them by id and by model', async () => {
  const cache = await start();
  expect(cache.state).toBe('usable');
  const ids = Array.from({ length: 30 }, (_, index) => index + 1);
  for (const id of ids) await cache.read('webform', id, 'full', loadVersion(1));
  await cache.read('pathway', 1, 'full', loadVersion(1));
  for (const { admin } of cluster.primaries) expect(await admin.dbsize()).toBeGreaterThan(0);
  for (const id of ids)
    expect(await cache.read('webform', id, 'full', loadNothing)).toMatchObject({ outcome: 'hit' });
  expect(await cache.clearRecord('webform', 1)).toBe(1);
  expect(await cache.clearPattern('webform')).toBe(29);
  expect(await count()).toBe(1);
  const { usedBytes, limitBytes } = await cache.memory();
  expect(usedBytes).toBeGreaterThan(3_000_000);
  expect(limitBytes).toBe(0);
});

test("finds other programs' keys of a record on every primary", async () => {
  const cache = await start();
  for (const { admin } of cluster.primaries) {
    for (let index = 0, kept = 0; kept < 5; index += 1) {
      const key = `webform:12:{${index}}`;
      kept += (await admin.set(key, 'theirs').catch(() => null)) === null ? 0 : 1;
    }
  }
  const all = await count();
  expect(all).toBe(5 * cluster.primaries.length);
  expect(await cache.clearRecord('webform', 12)).toBe(all);
  expect(await count()).toBe(0);
});

test('a clear follows a moved slot, and no read is stale', async () => {
  const cache = await start();
  await versionOf(cache, idAtA, 1);
  await cluster.move(slot, a, b);
  expect(await b.admin.exists(key)).toBe(1);
  // The cache does not know of the move yet.
  expect(await cache.clearRecord('webform', idAtA)).toBe(1);
  expect(await b.admin.exists(key)).toBe(0);
  expect(await versionOf(cache, idAtA, 2)).toBe(2);
  expect(await cache.read('webform', idAtA, 'full', loadNothing)).toMatchObject({ outcome: 'hit' });

  await cluster.move(slot, b, a);
  const read = await cache.read('webform', idAtA, 'full', loadVersion(2));
  expect(read).toMatchObject({ outcome: 'bypass', reason: { name: 'CacheRefused' } });
  await until('it is found where it is', async () => {
    const { outcome } = await cache.read('webform', idAtA, 'full', loadVersion(2));
    return outcome === 'hit';
  });
  expect(await a.admin.exists(key)).toBe(1);
});

test('while a slot moves, reads hit only the keys that have not moved, and clears are refused', async () => {
  const cache = await start();
  await versionOf(cache, idAtA, 1);
  await cluster.beginMove(slot, a, b);
  expect(await cache.read('webform', idAtA, 'full', loadNothing)).toMatchObject({ outcome: 'hit' });
  await expect(cache.clearPattern('webform')).rejects.toMatchObject({ name: 'CacheRefused' });
  await cluster.moveKeys(slot, a, b);
  expect(await cache.read('webform', idAtA, 'full', loadVersion(2))).toMatchObject({ outcome: 'bypass' });
  await expect(cache.clearRecord('webform', idAtA)).rejects.toMatchObject({ name: 'CacheRefused' });
  expect(await b.admin.call('ASKING')).toBe('OK');
  expect(await b.admin.exists(key)).toBe(1);
  expect(await cache.read('webform', idAtC, 'full', loadVersion(1))).toMatchObject({ outcome: 'miss' });

  await cluster.endMove(slot, a, b);
  expect(await cache.clearRecord('webform', idAtA)).toBe(1);
  await cluster.move(slot, b, a);
});

/** The clear is redirected to B, and before it gets there the move is reversed. */
test('does not redirect the clear of a moving key, which could return after the clear', async () => {
  const cache = await start({ unmanagedKeys: 'none' });
  await versionOf(cache, idAtA, 1);
  await cluster.beginMove(slot, a, b);
  await cluster.moveKeys(slot, a, b);
  const cleared = await cache.clearRecord('webform', idAtA).catch((error: Error) => error.name);

  await a.admin.call('CLUSTER', 'SETSLOT', slot, 'STABLE');
  await b.admin.call('MIGRATE', '127.0.0.1', a.port, key, 0, 5000);
  // Simulates a client that follows the redirect.
  const [, followed] = await Promise.all([
    b.admin.call('ASKING'),
    b.admin.eval(protocolScripts.clear, 1, key),
  ]);
  await b.admin.call('CLUSTER', 'SETSLOT', slot, 'STABLE');
  expect(followed).toBe(0);
  expect(await versionOf(cache, idAtA, 2)).toBe(1);
  expect(cleared).toBe('CacheRefused');
  expect(await cache.clearRecord('webform', idAtA)).toBe(1);
  expect(await versionOf(cache, idAtA, 2)).toBe(2);
});

/** Clears a model while its record moves from A to B behind B's scan, and back behind A's scan. */
async function clearWhileSlotMovesAndReturns(check: 'checked' | 'unchecked') {
  const cache = await start();
  await versionOf(cache, idAtA, 1);
  const connection = await started.connection(cluster.url);
  // In the order of their slots.
  const [nodeA, nodeB, nodeC] = connection.primaries() as [CacheNode, CacheNode, CacheNode];
  const scannedB = Promise.withResolvers<void>();
  let isFirst = true;
  const slowed: CacheNode[] = [
    {
      ...nodeA,
      async scan(cursor, glob) {
        if (!isFirst) return nodeA.scan(cursor, glob);
        await scannedB.promise;
        await cluster.move(slot, a, b);
        const page = await nodeA.scan(cursor, glob);
        await cluster.move(slot, b, a);
        isFirst = false;
        return page;
      },
    },
    {
      ...nodeB,
      async scan(cursor, glob) {
        const page = await nodeB.scan(cursor, glob);
        if (page.cursor === '0') scannedB.resolve();
        return page;
      },
    },
    nodeC,
  ];
  const unchecked = check === 'unchecked' ? { slotOwnership: async () => '' } : {};
  const clearer = createCacheClearer({ ...connection, primaries: () => slowed, ...unchecked }, 'sweep');
  const acknowledged = await clearer.clearPattern('webform');
  await untilUsable(cache);
  let readThen: number | undefined;
  await until('it is read from the cache, or with its help', async () => {
    const { outcome, record } = await cache.read('webform', idAtA, 'full', loadVersion(2));
    readThen = record?.version;
    return outcome !== 'bypass';
  });
  return { acknowledged, readThen };
}

test('detects a slot that moves to another node and back during a scan', async () => {
  expect(await clearWhileSlotMovesAndReturns('checked')).toEqual({ acknowledged: 1, readThen: 2 });
  await Promise.all(cluster.primaries.map(({ admin }) => admin.flushall()));
  expect(await clearWhileSlotMovesAndReturns('unchecked')).toEqual({ acknowledged: 0, readThen: 1 });
});

test('losing one primary affects only its keys, and its part recovers before it is used', async () => {
  const states: string[] = [];
  const recoveries: boolean[] = [];
  let recovered: number | undefined;
  let connects = 0;
  const cache = await start({
    onStateChange: (state, reason) => states.push(`${state} ${reason?.message ?? ''}`.trim()),
    async recover(clearer, isWhole) {
      recoveries.push(isWhole);
      connects += 1;
      if (connects <= 3) return;
      // B's part has no record of A; clearing the model clears B's part of it.
      expect(await clearer.clearRecord('webform', idAtA)).toBe(0);
      recovered = await clearer.clearPattern('webform');
    },
  });
  for (const id of [idAtA, idAtB, idAtC]) await versionOf(cache, id, 1);
  await b.admin.save();
  await untilUsable(cache);
  await b.kill();
  await until('the loss is detected', () => cache.state === 'partial');
  expect(states.at(-1)).toMatch(new RegExp(`^partial 127.0.0.1:${b.port}: `));
  for (const id of [idAtA, idAtC])
    expect(await cache.read('webform', id, 'full', loadNothing)).toMatchObject({ outcome: 'hit' });
  expect(await cache.read('webform', idAtB, 'full', loadVersion(2))).toMatchObject({ outcome: 'bypass' });
  await expect(cache.clearRecord('webform', idAtB)).rejects.toMatchObject({ name: 'CacheUnavailable' });
  await expect(cache.clearPattern('webform')).rejects.toMatchObject({ name: 'CacheUnavailable' });
  await expect(cache.memory()).rejects.toMatchObject({ name: 'CacheUnavailable' });

  await b.restart();
  await untilUsable(cache);
  // The hook runs more than once if B replied before it had rejoined its cluster.
  expect(recoveries.length).toBeGreaterThanOrEqual(4);
  expect(recoveries).not.toContain(true);
  expect(recovered).toBe(1);
  expect(await b.admin.dbsize()).toBe(0);
  expect(await versionOf(cache, idAtB, 2)).toBe(2);
  expect(await cache.read('webform', idAtC, 'full', loadNothing)).toMatchObject({ outcome: 'hit' });
});

test('uses a primary that holds keys of a slot that is still moving to it', async () => {
  await versionOf(await start(), idAtA, 1);
  await cluster.beginMove(slot, a, b);
  await cluster.moveKeys(slot, a, b);
  const cache = await start({ recover: async (clearer) => void (await clearer.clearPattern('webform')) });
  expect(cache.state).toBe('usable');
  await cluster.endMove(slot, a, b);
  await cluster.move(slot, b, a);
});

test('one reachable node is enough to find the cluster', async () => {
  const cache = await started.cache(`redis-cluster://127.0.0.1:1,127.0.0.1:${c.port}`);
  expect(cache.state).toBe('usable');
  const unreachable = await started.cache('redis-cluster://127.0.0.1:1,127.0.0.1:2');
  expect(unreachable.state).toBe('unavailable');
  expect(await unreachable.read('webform', 1, 'full', loadVersion(1))).toMatchObject({
    outcome: 'bypass',
    reason: { name: 'CacheUnavailable', message: expect.stringContaining('ECONNREFUSED') },
  });
  await expect(unreachable.clearRecord('webform', 1)).rejects.toMatchObject({ name: 'CacheUnavailable' });
  await unreachable.close();
  expect(unreachable.state).toBe('closed');
});

test('refuses to start if the URL has the wrong form', async () => {
  await expect(started.cache(a.url)).rejects.toMatchObject({
    name: 'UnsupportedRedis',
    message: expect.stringContaining('redis-cluster://'),
  });
  const alone = await started.server();
  await expect(started.cache(alone.url.replace('redis:', 'redis-cluster:'))).rejects.toMatchObject({
    name: 'UnsupportedRedis',
    message: expect.stringContaining('not a cluster'),
  });
});
