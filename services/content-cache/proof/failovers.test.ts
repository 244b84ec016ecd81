// Failovers that the race does not have: see race.test.ts.
import { expect, test } from '@jest/globals';
import { closedAfterEach, untilUsable } from '../cache/testing/closed-after-each.ts';
import { loadVersion } from '../cache/testing/loaders.ts';
import { startCluster } from '../../../test/support/redis-cluster.ts';
import { until } from '../../../test/support/wait.ts';

const started = closedAfterEach();
const cacheAt = (url: string, atLeast = 0) =>
  started.cache(url, { replicaGuard: { atLeast, maxLagSeconds: 2 } });

test('leaves the old primary after a manual failover even if it stays writable', async () => {
  const stores = await started.replication(2);
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
  expect(await cache.clearRecord('webform', 13)).toBe(1);
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
  await untilUsable(cache);
  expect((await cache.read('webform', 12, 'full', loadVersion(2))).record?.version).toBe(2);
  await until('the clear is accepted', async () => (await cache.clearRecord('webform', 12)) >= 0);
  expect(await heir.admin.exists('webform:12')).toBe(0);
});
