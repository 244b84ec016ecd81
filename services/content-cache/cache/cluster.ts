import { setTimeout as sleep } from 'node:timers/promises';

import type { HostPort, RedisAddress } from '@content-platform/chassis';
import { Redis } from 'ioredis';

import { askOnce } from './ask-once.ts';
import type { CacheConnection, CacheConnectionOptions, CacheState, ClearingReach } from './connection.ts';
import { CacheUnavailable, CacheUnfit, SlotElsewhere, SlotsUnsettled } from './errors.ts';
import type { CacheNode } from './node.ts';
import { clientSettings, createPrimary, RETRY_MS, type Primary } from './primary.ts';
import { protocolScripts } from './scripts.ts';
import {
  addressOf,
  mergeViews,
  readClusterNodes,
  slotOf,
  type ClusterView,
  type SlotMap,
} from './slot-map.ts';

/** The least time between two looks at the cluster, in milliseconds, however often a slot is not where it was. */
const LOOK_MS = 50;
/** How often a clear follows its key. */
const FOLLOWS = 5;

/**
 * To all primaries of a Redis Cluster. Each has a connection with all that a single server's has: when one is away, the
 * keys of the others stay in use.
 *
 * The slot map is our own, so that nothing is sent to a primary before the checks of its connection, and no READ twice.
 * It is asked of the primaries every second, and at once when one is lost or says that a slot is elsewhere; of every
 * known node while some primary is away. A key goes to the owner of its slot. What comes back:
 * - MOVED: nothing was executed. A read passes the cache by, a clear follows to the owner by the new map.
 * - ASK: the slot is on its way, and the key is not here any more or never was. Nobody follows: when the way is reversed
 *   the key may come back past a clear that went ahead of it. Reads pass the cache by, clears are refused until it ends.
 */
export function createClusterConnection(
  { nodes: seeds, access }: Extract<RedisAddress, { form: 'cluster' }>,
  options: CacheConnectionOptions,
): CacheConnection {
  // Certificates hold names.
  const byName = access.tls !== undefined;
  /** By `host:port`; those of the map, and no other. */
  const members = new Map<string, Primary>();
  let map: SlotMap | undefined;
  let state: CacheState = 'away';
  let reason: Error | undefined;
  let lookError: Error | undefined;
  let unfit: CacheUnfit | undefined;
  let oldTimeouts = 0;
  let looking: Promise<void> | undefined;
  let lookedAt = -Infinity;
  let running: Promise<void> | undefined;
  const closing = new AbortController();

  function join(at: HostPort): Promise<void> {
    const address = addressOf(at);
    const primary = createPrimary({
      redis: new Redis({ ...clientSettings, ...access, ...at }),
      scripts: options.scripts ?? protocolScripts,
      isCluster: true,
      recover: (node) => options.recover(onlyOf(node)),
      onStateChange(next) {
        if (members.get(address) !== primary) return;
        tell();
        if (next === 'away') void look();
      },
      onError: (error) => error instanceof SlotElsewhere && void look(),
    });
    members.set(address, primary);
    return primary.start().catch((error: CacheUnfit) => {
      unfit = error;
      // Made anew with the next look.
      members.delete(address);
    });
  }

  function leave(address: string): Promise<void> {
    const primary = members.get(address)!;
    members.delete(address);
    oldTimeouts += primary.timeouts;
    return primary.close();
  }

  /** Says how it stands with all primaries together. */
  function tell(): void {
    if (state === 'closed') return;
    const primaries = [...(map?.primaries.keys() ?? [])].map(
      (address) => [address, members.get(address)] as const,
    );
    const inState = (...states: CacheState[]) =>
      primaries.filter(([, primary]) => states.includes(primary?.state ?? 'away'));
    const isWhole = map?.isWhole === true && inState('usable').length === primaries.length;
    const next = isWhole
      ? 'usable'
      : inState('usable').length > 0
        ? 'partial'
        : inState('recovering').length > 0
          ? 'recovering'
          : 'away';
    const [lost] = inState('away', 'closed');
    const why = lost
      ? new CacheUnavailable(`${lost[0]}: ${lost[1]?.reason?.message ?? unfit?.message ?? 'not connected'}`)
      : map && !map.isWhole
        ? new CacheUnavailable('some slots belong to no primary')
        : lookError;
    const told = next === 'away' || next === 'partial' ? why : undefined;
    const news = next !== state || told?.message !== reason?.message;
    state = next;
    reason = told;
    if (news) options.onStateChange?.(next, told);
  }

  async function ask(): Promise<ClusterView[]> {
    const there = [...members].filter(([, { state: one }]) => one === 'usable' || one === 'recovering');
    const connected = there.map(async ([address, primary]) => {
      const text = await primary.nodeIn('usable', 'recovering').clusterNodes();
      return readClusterNodes(text, map!.primaries.get(address)!, byName);
    });
    const isComplete = map?.isWhole === true && there.length === map.primaries.size;
    const strangers = isComplete ? [] : [...seeds, ...(map?.nodes ?? [])];
    const unknown = new Map(strangers.map((at) => [addressOf(at), at]));
    for (const [address] of there) unknown.delete(address);
    const asked = [...unknown.values()].map((at) =>
      askOnce({ ...at, ...access }, async (client) =>
        readClusterNodes(String(await client.cluster('NODES')), at, byName),
      ),
    );
    const answers = await Promise.allSettled([...connected, ...asked]);
    const refusals = answers.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []));
    lookError = refusals[0];
    if (refusals.some(({ message }) => message.includes('cluster support disabled')))
      unfit = new CacheUnfit('this Redis is no cluster: redis-cluster:// is for one');
    return answers.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  }

  async function lookNow(): Promise<void> {
    const pause = lookedAt + LOOK_MS - performance.now();
    if (pause > 0) await sleep(pause);
    const views = await ask();
    lookedAt = performance.now();
    if (closing.signal.aborted) return;
    if (views.length > 0) {
      map = mergeViews(views);
      const known = map.primaries;
      for (const address of members.keys()) if (!known.has(address)) void leave(address);
      const fresh = [...known].filter(([address]) => !members.has(address));
      await Promise.all(fresh.map(([, at]) => join(at)));
    }
    tell();
  }

  /** Whoever calls while one is under way shares it: what it did not see yet is met again, and looked for again. */
  function look(): Promise<void> {
    looking ??= lookNow().finally(() => (looking = undefined));
    return looking;
  }

  function ownerOf(key: string): Primary {
    const address = map?.owners[slotOf(key)];
    const primary = address === undefined ? undefined : members.get(address);
    if (primary) return primary;
    throw new CacheUnavailable(reason?.message ?? 'no primary is known for the key');
  }

  function primaries(): { at: HostPort; node: CacheNode }[] {
    if (!map?.isWhole) throw new CacheUnavailable(reason?.message ?? 'some slots belong to no primary');
    return [...map.primaries].map(([address, at]) => {
      const primary = members.get(address);
      if (!primary) throw new CacheUnavailable(`${address} is not connected`);
      return { at, node: primary.nodeIn('usable', 'recovering') };
    });
  }

  return {
    get state() {
      return state;
    },
    get timeouts() {
      return [...members.values()].reduce((sum, primary) => sum + primary.timeouts, oldTimeouts);
    },
    async start() {
      await look();
      if (unfit) throw unfit;
      running = (async () => {
        for (;;) {
          await sleep(RETRY_MS, undefined, { signal: closing.signal }).catch(() => {});
          if (closing.signal.aborted) return;
          await look();
        }
      })();
    },
    forReading: (key) => ownerOf(key).nodeIn('usable'),
    async clear(key) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await ownerOf(key).nodeIn('usable', 'recovering').clear(key);
        } catch (error) {
          const isMoved = error instanceof SlotElsewhere && !error.isAsk;
          if (!isMoved || attempt === FOLLOWS) throw error;
          await look();
        }
      }
    },
    primaries: () => primaries().map(({ node }) => node),
    async slotMap() {
      const views = await Promise.all(
        primaries().map(async ({ at, node }) => readClusterNodes(await node.clusterNodes(), at, byName)),
      );
      const [{ ownership, owners }] = views as [ClusterView];
      const isAgreed = views.every((view) => view.ownership === ownership && !view.isMoving);
      // The primaries that are about to be scanned are the ones that they name, and no other.
      const isOurs =
        owners.length === views.length && owners.every(({ at }) => map?.primaries.has(addressOf(at)));
      if (isAgreed && isOurs) return ownership;
      await look();
      throw new SlotsUnsettled('slots of the cluster are being moved');
    },
    async close() {
      closing.abort();
      await Promise.all([running, looking]);
      await Promise.all([...members.keys()].map(leave));
      if (state === 'closed') return;
      state = 'closed';
      options.onStateChange?.('closed');
    },
  };
}

/** What one primary holds, for the clears that it missed while it was away; of the others' keys there is nothing. */
function onlyOf(node: CacheNode): ClearingReach {
  return {
    clear: (key) =>
      node.clear(key).catch((error: unknown) => {
        if (error instanceof SlotElsewhere) return 0;
        throw error;
      }),
    primaries: () => [node],
    slotMap: async () => '',
  };
}
