// Failovers that the race does not have: see race.test.ts.
import { expect, test } from '@jest/globals';
import { parseRedisUrl } from '@content-platform/chassis';
import { findPrimary, type SentinelAddress } from '../cache/redis/sentinels.ts';
import { closedAfterEach, usable } from '../cache/testing/closed-after-each.ts';
import { loadVersion } from '../cache/testing/loaders.ts';
import { startCluster } from '../../../test/support/redis-cluster.ts';
import { startReplication, type Replication } from '../../../test/support/redis-replication.ts';
import { until } from '../../../test/support/wait.ts';

const started = closedAfterEach();

async function replication(replicas: number): Promise<Replication> {
  const stores = await startReplication(replicas);
  started.onEnd(stores.stop);
  return stores;
}
const cacheAt = (url: string, atLeast = 0) =>
  started.cache(url, { replicaGuard: { atLeast, maxLagSeconds: 2 } });

test('believes the sentinel that knows the latest failover', async () => {
  const [stores, other] = [await replication(1), await replication(0)];
  await stores.sentinels[0]!.admin.call('SENTINEL', 'FAILOVER', 'main');
  await until('the replica is the primary', async () => (await stores.primary()) === stores.servers[1]);
  const [outdated, current] = [other.sentinels[0]!.port, stores.sentinels[0]!.port];
  const url = `redis-sentinel://127.0.0.1:${outdated},127.0.0.1:${current},127.0.0.1:${outdated}/main`;
  const found = await findPrimary(parseRedisUrl(url) as SentinelAddress);
  expect(found).toEqual({ host: '127.0.0.1', port: stores.servers[1]!.port });
});

test('leaves the old primary after a manual failover even if it stays writable', async () => {
  const stores = await replication(2);
  const cache = await cacheAt(stores.url, 1);
  await cache.read('webform', 12, 'full', loadVersion(1));
  // Otherwise the sentinels would turn it into a replica within seconds.
  await stores.servers[0]!.admin.acl('SETUSER', 'default', '-replicaof', '-slaveof');
  await stores.sentinels[0]!.admin.call('SENTINEL', 'FAILOVER', 'main');
  const next = await until('another server is the primary', async () => {
    const now = await stores.primary();
    return now !== stores.servers[0] && now;
  });
  await until('the cache uses the new primary', async () => {
    const { record } = await cache.read('webform', 13, 'full', loadVersion(1));
    expect(record?.version).toBe(1);
    return (await next.admin.exists('webform:13')) === 1;
  });
  expect(await cache.clearModel('webform', 13)).toBe(1);
});

test('asks every known node of a cluster when all primaries are lost', async () => {
  const pair = await startCluster({ primaries: 1, replicas: 1 });
  started.onEnd(pair.stop);
  const [primary, heir] = [pair.primaries[0]!, pair.replicas[0]![0]!];
  const cache = await cacheAt(`redis-cluster://127.0.0.1:${primary.port}`);
  await cache.read('webform', 12, 'full', loadVersion(1));
  await primary.kill();
  await until('the loss is noticed', () => cache.state === 'unavailable');
  await heir.admin.call('CLUSTER', 'FAILOVER', 'TAKEOVER');
  await usable(cache);
  expect((await cache.read('webform', 12, 'full', loadVersion(2))).record?.version).toBe(2);
  await until('the clear is accepted', async () => (await cache.clearModel('webform', 12)) >= 0);
  expect(await heir.admin.exists('webform:12')).toBe(0);
});
