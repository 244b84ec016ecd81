import { expect, test } from '@jest/globals';
import { parseRedisUrl } from '@content-platform/chassis';
import { findPrimary, type SentinelAddress } from './sentinels.ts';
import { createCacheConnection } from '../index.ts';
import { protocolScripts } from '../testing/caches.ts';
import { closedAfterEach, untilUsable } from '../testing/closed-after-each.ts';
import { loadNothing, loadVersion } from '../testing/loaders.ts';
import { startSentinel } from '../../../../test/support/redis-server.ts';
import { until, within } from '../../../../test/support/wait.ts';

const { cache: cacheAt, onEnd, replication } = closedAfterEach();
const addressOf = (url: string) => parseRedisUrl(url) as SentinelAddress;

test('uses a promoted replica, whose entries count as absent', async () => {
  const stores = await replication(1, { password: 'sec:ret' }, 3_000);
  let recoveries = 0;
  const cache = await cacheAt(stores.url, { recover: async () => void (recoveries += 1) });
  expect(cache.state).toBe('usable');
  await cache.read('webform', 12, 'full', loadVersion(1));
  expect(await cache.read('webform', 12, 'full', loadNothing)).toMatchObject({ outcome: 'hit' });
  await stores.servers[0]!.admin.wait(1, 1000);

  await stores.servers[0]!.kill();
  // The database serves every read until the sentinels have agreed.
  const stale = await until('the replica has taken over', async () => {
    const { record } = await cache.read('webform', 12, 'full', loadVersion(2));
    return record?.version === 2 ? cache.state === 'usable' && [] : [record];
  });
  expect(stale).toEqual([]);
  expect(await stores.servers[1]!.admin.exists('webform:12')).toBe(1);
  expect((await cache.read('webform', 12, 'full', loadVersion(2))).record?.version).toBe(2);
  // The sentinels may still reconfigure the new primary, which refuses a clear meanwhile.
  await until('a clear is accepted', () => cache.clearRecord('webform', 12));
  expect(await stores.servers[1]!.admin.exists('webform:12')).toBe(0);
  expect(recoveries).toBeGreaterThanOrEqual(2);
});

test('finds the primary although one sentinel hangs, one is down and one knows nothing', async () => {
  const stores = await replication(0);
  const ignorant = await startSentinel([]);
  onEnd(ignorant.stop);
  stores.sentinels[0]!.pause();
  await stores.sentinels[1]!.kill();
  const hosts = stores.url.replace('/main', `,127.0.0.1:${ignorant.port}/main`);
  expect(await findPrimary(addressOf(hosts))).toMatchObject({ port: stores.servers[0]!.port });
  const cache = await cacheAt(hosts);
  expect(cache.state).toBe('usable');
});

test('believes the sentinel that knows the newest failover, in any order', async () => {
  const knowing = (epoch: number) =>
    startSentinel([`sentinel monitor main 127.0.0.1 ${epoch} 9`, `sentinel config-epoch main ${epoch}`]);
  const sentinels = await Promise.all([1, 3, 2].map(knowing));
  for (const { stop } of sentinels) onEnd(stop);
  const hosts = sentinels.map(({ port }) => `127.0.0.1:${port}`).join();
  expect(await findPrimary(addressOf(`redis-sentinel://${hosts}/main`))).toMatchObject({ port: 3 });
});

test('reports why no sentinel knows the primary, and recovers', async () => {
  const stores = await replication(0);
  await Promise.all(stores.sentinels.map((sentinel) => sentinel.kill()));
  const reasons: string[] = [];
  const cache = await cacheAt(stores.url, { onStateChange: (_, why) => reasons.push(why?.message ?? '') });
  expect(cache.state).toBe('unavailable');
  expect(reasons).toEqual([expect.stringMatching(/^no sentinel knows the primary main \(.*ECONNREFUSED/)]);
  await stores.sentinels[1]!.restart();
  await untilUsable(cache);
});

test('close() disconnects during the search for the primary', async () => {
  const { url } = await replication(0);
  const connection = createCacheConnection({ url, scripts: protocolScripts, recover: async () => {} });
  const started = connection.start();
  await within('the end', connection.close(), 10_000);
  await started;
  expect(connection.state).toBe('closed');
});

test('refuses a replica that a sentinel names, even a writable replica', async () => {
  const stores = await replication(1, { 'replica-read-only': 'no' }, 3_000);
  const [, replica] = stores.servers;
  const liar = await startSentinel([`sentinel monitor main 127.0.0.1 ${replica!.port} 9`]);
  onEnd(liar.stop);
  const reasons: string[] = [];
  const cache = await cacheAt(`redis-sentinel://127.0.0.1:${liar.port}/main`, {
    onStateChange: (state, why) => reasons.push(`${state} ${why?.message ?? ''}`),
  });
  expect(cache.state).toBe('unavailable');
  expect(reasons).toEqual([expect.stringContaining('READONLY this server is a replica')]);
});
