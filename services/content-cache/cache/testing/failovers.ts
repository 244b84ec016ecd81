import { setTimeout as sleep } from 'node:timers/promises';
import { calmMs, inShuffledRounds } from './redis-faults.ts';
import { pick, type Random } from './random.ts';
import type { ClusterMember, RedisCluster } from '../../../../test/support/redis-cluster.ts';
import type { Replication } from '../../../../test/support/redis-replication.ts';
import type { RedisServer } from '../../../../test/support/redis-server.ts';
import { until } from '../../../../test/support/wait.ts';

const isPrimary = async ({ admin }: RedisServer) => String(await admin.role()).startsWith('master');
const replicasOf = async ({ admin }: RedisServer) =>
  [...(await admin.info('replication')).matchAll(/state=online/g)].length;

/** Causes failovers by sentinels until `over`, each way at least once. Returns the number of each. */
export async function replacePrimary(stores: Replication, random: Random, over: AbortSignal) {
  const counts = { sleptThroughFailover: 0, sleptNotLongEnough: 0, killed: 0 };
  const untilReplaced = (old: RedisServer) =>
    until('another is the primary', async () => {
      const next = await stores.primary();
      return next !== old && (await isPrimary(next));
    });
  const ways = {
    async sleptThroughFailover(old: RedisServer) {
      old.pause();
      await untilReplaced(old);
      await sleep(random() * 2_000);
      old.resume();
    },
    async sleptNotLongEnough(old: RedisServer) {
      old.pause();
      await sleep(random() * 3_500);
      old.resume();
    },
    async killed(old: RedisServer) {
      await old.kill();
      await untilReplaced(old);
      await old.restart();
    },
  };
  for (const way of inShuffledRounds(Object.keys(ways) as (keyof typeof ways)[], random, over)) {
    await ways[way](await stores.primary());
    counts[way] += 1;
    await until('all others follow the primary', async () => {
      const primary = await stores.primary();
      return (await isPrimary(primary)) && (await replicasOf(primary)) === stores.servers.length - 1;
    });
    await sleep(calmMs + random() * 1_000);
  }
  return counts;
}

/** Causes failovers in a cluster and moves slots of `keys` until `over`, each way at least once. Returns the number of each. */
export async function upsetCluster(cluster: RedisCluster, keys: string[], random: Random, over: AbortSignal) {
  const counts = { slotsMoved: 0, sleptThroughFailover: 0, killed: 0 };
  const shards = cluster.primaries.map((primary, index) => [primary, ...cluster.replicas[index]!]);
  /** The shard's current primary, and a node that may follow it. */
  async function shard(index: number): Promise<[ClusterMember, ClusterMember]> {
    const [one, other] = shards[index] as [ClusterMember, ClusterMember];
    return (await isPrimary(one)) ? [one, other] : [other, one];
  }
  /** A primary refuses while its replica lags, so this retries. */
  const move = (slot: number, from: ClusterMember, to: ClusterMember) =>
    until('the slot is moved', () => cluster.move(slot, from, to).then(() => true));
  const untilTakenOver = (heir: ClusterMember) => until('the heir has taken over', () => isPrimary(heir));
  const ways = {
    async slotsMoved() {
      const [to] = await shard(pick(random, shards.length));
      const moving = keys.filter(() => random() < 0.3);
      for (const key of moving) {
        const [slot, from] = [await cluster.slotOf(key), (await cluster.ownerOf(key))!];
        if (from === to) continue;
        await move(slot, from, to);
        await sleep(random() * 300);
        if (random() < 0.7) await move(slot, to, from);
      }
    },
    async sleptThroughFailover() {
      const [old, heir] = await shard(pick(random, shards.length));
      old.pause();
      await untilTakenOver(heir);
      await sleep(random() * 1_000);
      old.resume();
    },
    async killed() {
      const [old, heir] = await shard(pick(random, shards.length));
      if (random() < 0.5) await old.admin.save();
      await old.kill();
      await untilTakenOver(heir);
      await old.restart();
    },
  };
  for (const way of inShuffledRounds(Object.keys(ways) as (keyof typeof ways)[], random, over)) {
    await ways[way]();
    counts[way] += 1;
    await until('every shard has a primary with a replica', async () => {
      const primaries = await Promise.all(shards.map(async (_, index) => (await shard(index))[0]));
      return (await Promise.all(primaries.map(replicasOf))).every((count) => count === 1);
    });
    await sleep(calmMs + random() * 1_000);
  }
  return counts;
}
