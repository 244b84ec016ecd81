import { expect, test } from '@jest/globals';
import type { ProtocolScripts } from '../connection.ts';
import { createScripts } from '../protocol/scripts.ts';
import { protocolScripts } from '../testing/caches.ts';
import { closedAfterEach, untilUsable } from '../testing/closed-after-each.ts';
import { loadVersion } from '../testing/loaders.ts';
import { follow } from '../../../../test/support/redis-replication.ts';
import { until } from '../../../../test/support/wait.ts';

const guarded = createScripts({ atLeast: 1, maxLagSeconds: 1 });

const started = closedAfterEach();
const { server } = started;
const cacheAt = (url: string, scripts: ProtocolScripts) =>
  started.cache(url, { scripts, unmanagedKeys: 'none' });

test('refuses a primary whose replica hangs, and uses it again afterwards', async () => {
  const [primary, replica] = [await server(), await server()];
  await follow(replica, primary);
  const cache = await cacheAt(primary.url, guarded);
  const isHit = async () => (await cache.read('webform', 12, 'full', loadVersion(1))).outcome === 'hit';
  await until('it is cached', isHit);

  replica.pause();
  const read = await until('reads bypass the cache', async () => {
    const answer = await cache.read('webform', 12, 'full', loadVersion(1));
    return answer.outcome === 'bypass' && answer;
  });
  expect(read.reason).toMatchObject({
    name: 'CacheRefused',
    message: expect.stringContaining('NOREPLICAS 0 replicas follow this server'),
  });
  await expect(cache.clearRecord('webform', 12)).rejects.toMatchObject({ name: 'CacheRefused' });
  await expect(cache.clearPattern('webform')).rejects.toMatchObject({ name: 'CacheRefused' });
  await expect(cache.inspect('webform', 12)).rejects.toMatchObject({ name: 'CacheRefused' });

  replica.resume();
  await until('the cache is used again', isHit);
  expect(await until('a clear is accepted', () => cache.clearRecord('webform', 12))).toBe(1);
});

test('never uses a primary without a replica, and reports why', async () => {
  const primary = await server();
  const reasons: (string | undefined)[] = [];
  const cache = await started.cache(primary.url, {
    scripts: guarded,
    onStateChange: (_, reason) => reasons.push(reason?.message),
  });
  expect(cache.state).toBe('unavailable');
  expect(reasons).toEqual([expect.stringContaining('CACHE_MIN_REPLICAS is 1')]);
});

/** A sleeps while B takes over and is cleared. Returns the version of the first read at A afterwards. */
async function sleepThroughFailover(scripts: ProtocolScripts): Promise<unknown> {
  const [a, b] = [await server(), await server()];
  await follow(b, a);
  const cacheOfA = await cacheAt(a.url, scripts);
  await cacheOfA.read('webform', 12, 'full', loadVersion(1));
  await a.admin.wait(1, 1000);

  a.pause();
  await until('the cache notices the pause', () => cacheOfA.state === 'unavailable');
  await b.admin.replicaof('NO', 'ONE');
  await (await cacheAt(b.url, protocolScripts)).clearRecord('webform', 12);
  a.resume();
  // The cache without the guard uses A again. The cache with the guard refuses A, because its replica has left.
  if (scripts === protocolScripts) await untilUsable(cacheOfA);
  else
    await until('A responds', async () => (await a.admin.info('replication')).includes('connected_slaves:0'));
  for (let reads = 0; reads < 200; reads += 1) {
    const { record, outcome } = await cacheOfA.read('webform', 12, 'full', loadVersion(2));
    if (outcome === 'hit' || record?.version !== 2) return record?.version;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return 2;
}

test('returns no hit from a primary that was suspended during a failover', async () => {
  expect(await sleepThroughFailover(guarded)).toBe(2);
  expect(await sleepThroughFailover(protocolScripts)).toBe(1);
});
