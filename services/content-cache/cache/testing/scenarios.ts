import { once } from 'node:events';
import type { Redis } from 'ioredis';
import { recordKey } from '../protocol/record-cache.ts';
import type { ReplicaGuard } from '../protocol/scripts.ts';
import { injectFaults, type RedisFault } from './redis-faults.ts';
import { replacePrimary, upsetCluster } from './failovers.ts';
import type { Random } from './random.ts';
import type { RaceThread } from './threads.ts';
import { startCluster } from '../../../../test/support/redis-cluster.ts';
import { startReplication } from '../../../../test/support/redis-replication.ts';
import { startRedis } from '../../../../test/support/redis-server.ts';

/** A Redis for a race, and the faults to inject. */
export interface Scenario {
  name: string;
  does: string;
  /** share of the requested reads; the scenarios with faults add up to more than 1 */
  share: number;
  /** Redis and the caches count replicas, unless `uncounted`. */
  start(uncounted?: boolean): Promise<Stage>;
}

export interface Stage extends Pick<RaceThread, 'caches' | 'foreignUrl'> {
  admin: Redis;
  /** Injects faults into Redis until `over`. Returns the number of each fault. */
  trouble(random: Random, over: AbortSignal): Promise<Record<string, number>>;
  stop(): Promise<void>;
}

/** Few records: most reads overlap a clear. */
export const models = ['webform', 'pathway'];
export const records = 4;

/** Many records: a sweep needs several pages. */
const OTHER_KEYS = 12_000;
async function startSingleRedis(settings: Record<string, string>, kinds: RedisFault[]): Promise<Stage> {
  const redis = await startRedis(settings);
  const { url, admin, stop } = redis;
  const others = Array.from({ length: OTHER_KEYS }, (_, key) => [`other:${key}:x`, 'y'.repeat(50)]);
  await admin.mset(...others.flat());
  return {
    admin,
    caches: [{ url }, { url }],
    async trouble(random, over) {
      if (kinds.length === 0) return once(over, 'abort').then(() => ({}));
      return injectFaults(redis, kinds, random, over);
    },
    stop,
  };
}

/** The same guard as settings of Redis. */
const settingsFor = ({ atLeast, maxLagSeconds }: ReplicaGuard) => ({
  'min-replicas-to-write': String(atLeast),
  'min-replicas-max-lag': String(maxLagSeconds),
  'repl-ping-replica-period': '1',
});

const commonFaults: RedisFault[] = ['hang', 'forgetScripts', 'evict', 'runFull', 'dropConnections'];

export const scenarios: Scenario[] = [
  {
    name: 'undisturbed',
    does: 'one Redis; clears of records and of models, keys of other programs',
    share: 0.1,
    async start() {
      const stage = await startSingleRedis({}, []);
      return { ...stage, foreignUrl: stage.caches[0]!.url };
    },
  },
  {
    name: 'snapshots',
    does: 'one Redis that is killed and comes back from its last snapshot, hangs, is full, evicts, forgets scripts and drops connections, in turn',
    share: 0.4,
    start: () => startSingleRedis({}, [...commonFaults, 'crash', 'crash', 'crash']),
  },
  {
    name: 'cut file',
    does: 'one Redis that is killed and comes back without the end of its append-only file, and the rest as before',
    share: 0.2,
    start: () => startSingleRedis({ appendonly: 'yes' }, [...commonFaults, 'cutTail', 'cutTail', 'cutTail']),
  },
  {
    name: 'failover',
    does: 'a primary with two replicas and three sentinels; it sleeps until another has taken over, and wakes, or is killed; each process has one cache that knows only the address of the first primary',
    share: 0.2,
    async start(uncounted = false) {
      const replicaGuard = { atLeast: uncounted ? 0 : 1, maxLagSeconds: 2 };
      const stores = await startReplication(2, settingsFor(replicaGuard), 4_000);
      const { url } = stores;
      return {
        admin: stores.servers[0]!.admin,
        caches: [
          { url, replicaGuard },
          { url, replicaGuard },
          { url, replicaGuard, readsFrom: stores.servers[0]!.url },
        ],
        trouble: (random, over) => replacePrimary(stores, random, over),
        stop: stores.stop,
      };
    },
  },
  {
    name: 'cluster',
    does: 'three primaries with a replica each: they sleep through their failover or are killed, slots of the records are moved there and back; half of the caches sweep',
    share: 0.2,
    async start(uncounted = false) {
      const replicaGuard = { atLeast: uncounted ? 0 : 1, maxLagSeconds: 1 };
      const cluster = await startCluster({ settings: settingsFor(replicaGuard) });
      const { url } = cluster;
      const keys = models.flatMap((model) =>
        Array.from({ length: records }, (_, index) => recordKey(model, index + 1)),
      );
      return {
        admin: cluster.primaries[0]!.admin,
        caches: [
          { url, replicaGuard, unmanagedKeys: 'none' },
          { url, replicaGuard, unmanagedKeys: 'sweep' },
        ],
        trouble: (random, over) => upsetCluster(cluster, keys, random, over),
        stop: cluster.stop,
      };
    },
  },
];
