import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { recordKey } from '../protocol/record-cache.ts';
import { slotOf } from './slot-map.ts';
import { closedAfterEach, usable } from '../testing/closed-after-each.ts';
import { loadVersion } from '../testing/loaders.ts';
import { startCluster, type RedisCluster } from '../../../../test/support/redis-cluster.ts';
import { until } from '../../../../test/support/wait.ts';

/** A shard of two nodes needs both, or its primary refuses. */
const replicaGuard = { atLeast: 1, maxLagSeconds: 1 };

let cluster: RedisCluster;
const started = closedAfterEach();
beforeAll(async () => {
  const settings = { 'min-replicas-to-write': '1', 'min-replicas-max-lag': '1' };
  cluster = await startCluster({ replicas: 1, settings });
});
afterAll(() => cluster.stop());

test('serves no stale entry of the replica that takes over from a dead primary', async () => {
  const cache = await started.cache(cluster.url, { replicaGuard });
  await usable(cache);
  const [primary] = cluster.primaries;
  const [replica] = cluster.replicas[0]!;
  const ids = Array.from({ length: 100 }, (_, index) => index + 1);
  const id = ids.find((one) => slotOf(recordKey('webform', one)) < 5_000)!;
  const other = ids.find((one) => slotOf(recordKey('webform', one)) > 6_000)!;
  for (const one of [id, other]) await cache.read('webform', one, 'full', loadVersion(1));
  await until('the replica has it', async () => (await replica!.admin.dbsize()) > 0);

  await primary!.kill();
  let [hits, stale] = [0, 0];
  await until('the replica has taken over, and the other shard was read meanwhile', async () => {
    stale += (await cache.read('webform', id, 'full', loadVersion(2))).record?.version === 2 ? 0 : 1;
    hits += (await cache.read('webform', other, 'full', loadVersion(1))).outcome === 'hit' ? 1 : 0;
    return hits > 0 && String(await replica!.admin.role()).startsWith('master');
  });
  expect(stale).toBe(0);
  // Without a replica the new primary refuses until the old primary is back.
  await expect(cache.clearModel('webform', id)).rejects.toMatchObject({
    name: expect.stringMatching(/^Cache(Refused|Unavailable)$/),
  });
  await primary!.restart();
  await usable(cache);
  expect(await replica!.admin.exists(recordKey('webform', id))).toBe(1);
  // On a busy machine the replica may lag for a moment; then the new primary refuses.
  const readAgain = () => cache.read('webform', id, 'full', loadVersion(2));
  expect((await readAgain()).record?.version).toBe(2);
  await until('the record is cached again', async () => (await readAgain()).outcome === 'hit');
  await until('the clear is accepted', async () => (await cache.clearPattern('webform')) >= 0);
  for (const key of [id, other].map((one) => recordKey('webform', one)))
    expect(await (await cluster.ownerOf(key))!.admin.exists(key)).toBe(0);
});
