import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';

import type { ContentCache } from './index.ts';
import { recordKey } from './keys.ts';
import { slotOf } from './slot-map.ts';
import { startCache } from './testing/caches.ts';
import { loadNothing, loadVersion } from './testing/loaders.ts';
import { raceAndTell, type RaceFigures } from './testing/race.ts';
import { startCluster, type RedisCluster } from '../../../test/support/redis-cluster.ts';
import { until } from '../../../test/support/wait.ts';

const PROCESSES = 3;
const seed = Number(process.env['RACE_SEED'] ?? Math.floor(Math.random() * 1e9));
/** With one replica a shard has two nodes: both, or it refuses. */
const replicaGuard = { atLeast: 1, maxLagSeconds: 1 };

let cluster: RedisCluster;
let caches: ContentCache[] = [];
beforeAll(async () => {
  const settings = { 'min-replicas-to-write': '1', 'min-replicas-max-lag': '1' };
  cluster = await startCluster({ replicas: 1, settings });
});
afterAll(() => cluster.stop());
afterEach(async () => {
  await Promise.all(caches.map((cache) => cache.close()));
  caches = [];
});

async function start(): Promise<ContentCache> {
  const cache = await startCache(cluster.url, { replicaGuard });
  caches.push(cache);
  return cache;
}

const usable = (cache: ContentCache) => until('the cache to be usable', () => cache.state === 'usable');

test('a primary that dies, and its replica that takes over with what the clear should have taken', async () => {
  const cache = await start();
  await usable(cache);
  const [primary] = cluster.primaries;
  const [replica] = cluster.replicas[0]!;
  const ids = Array.from({ length: 100 }, (_, index) => index + 1);
  const id = ids.find((one) => slotOf(recordKey('webform', one)) < 5_000)!;
  const other = ids.find((one) => slotOf(recordKey('webform', one)) > 6_000)!;
  for (const one of [id, other]) await cache.read('webform', one, 'full', loadVersion(1));
  await until('the replica has it', async () => (await replica!.admin.dbsize()) > 0);

  await primary!.kill();
  let hits = 0;
  await until('the replica has taken over', async () => {
    expect((await cache.read('webform', id, 'full', loadVersion(2))).record?.version).toBe(2);
    hits += (await cache.read('webform', other, 'full', loadVersion(1))).outcome === 'hit' ? 1 : 0;
    return String(await replica!.admin.role()).startsWith('master');
  });
  expect(hits).toBeGreaterThan(0);
  // It has nobody behind it: until the old primary is back it refuses.
  await expect(cache.clearModel('webform', id)).rejects.toMatchObject({
    name: expect.stringMatching(/^Cache(Refused|Unavailable)$/),
  });
  await primary!.restart();
  await usable(cache);
  expect(await replica!.admin.exists(recordKey('webform', id))).toBe(1);
  expect((await cache.read('webform', id, 'full', loadVersion(2))).record?.version).toBe(2);
  expect(await cache.read('webform', id, 'full', loadNothing)).toMatchObject({ outcome: 'hit' });
  expect(await cache.clearPattern('webform')).toBe(2);
});

test('when nobody is left who could say, those are asked that were heard of before', async () => {
  const pair = await startCluster({ primaries: 1, replicas: 1 });
  try {
    const [primary, heir] = [pair.primaries[0]!, pair.replicas[0]![0]!];
    const cache = await startCache(`redis-cluster://127.0.0.1:${primary.port}`);
    caches.push(cache);
    await cache.read('webform', 12, 'full', loadVersion(1));
    await primary.kill();
    await until('it is noticed', () => cache.state === 'away');
    await heir.admin.call('CLUSTER', 'FAILOVER', 'TAKEOVER');
    await usable(cache);
    expect((await cache.read('webform', 12, 'full', loadVersion(2))).record?.version).toBe(2);
    expect(await cache.clearModel('webform', 12)).toBe(1);
  } finally {
    await pair.stop();
  }
});

/** The second shard's primary sleeps until its replica has taken over, and wakes; slots of the others come and go. */
async function disturb(): Promise<void> {
  const [, second, third] = cluster.primaries;
  const [heir] = cluster.replicas[1]!;
  // The first shard's, whichever of the two that is by now; the record's slot is one of the first shard.
  const target = (await cluster.ownerOf(recordKey('webform', 4)))!;
  const slots = Array.from({ length: 20 }, (_, index) => slotOf(recordKey('webform', index + 1)));
  const moving = slots.filter((slot) => slot > 11_000).slice(0, 3);
  const there = async () => String(await heir!.admin.role()).startsWith('master');

  const moveThereAndBack = async () => {
    for (const slot of moving) await cluster.move(slot, third!, target);
    await sleep(200);
    for (const slot of moving) await cluster.move(slot, target, third!);
    await sleep(300);
  };
  for (let round = 0; round < 2; round += 1) await moveThereAndBack();
  second!.pause();
  await until('the heir has taken over', there);
  await sleep(300);
  second!.resume();
  for (let round = 0; round < 2; round += 1) await moveThereAndBack();
  await until('every cache is whole again', () => caches.every(({ state }) => state === 'usable'));
  await sleep(1_000);
}

test(`no read is stale while a primary sleeps through its failover and slots move (RACE_SEED=${seed})`, async () => {
  await Promise.all(Array.from({ length: PROCESSES }, start));
  await Promise.all(caches.map(usable));
  let isOver = false;
  const disturbing = disturb().finally(() => (isOver = true));
  const done = ({ stale }: RaceFigures) => isOver || stale > 0;
  const figures = await raceAndTell('cluster race', {
    seed,
    caches,
    readers: 24,
    writers: 4,
    done,
    limitMs: 90_000,
  });
  await disturbing;
  expect(figures).toMatchObject({ stale: 0, mistaken: 0 });
  const { hits, bypasses, refusedClears, clears, readsDuringClear } = figures;
  expect(Math.min(hits, bypasses, refusedClears, clears, readsDuringClear)).toBeGreaterThan(0);
});
