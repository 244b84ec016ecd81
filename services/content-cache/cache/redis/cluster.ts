import { setTimeout as sleep } from 'node:timers/promises';
import type { HostPort, RedisAddress } from '@content-platform/chassis';
import { Redis } from 'ioredis';
import {
  type CacheConnection,
  type CacheConnectionOptions,
  type CacheNode,
  type CacheState,
  CacheUnavailable,
  type ClearTransport,
  SlotMoved,
  SlotsMoving,
  UnsupportedRedis,
} from '../connection.ts';
import { clientSettings, createPrimary, reconnectMs, type Primary, withTemporaryClient } from './primary.ts';
import {
  addressOf,
  mergeViews,
  readClusterNodes,
  slotOf,
  type ClusterView,
  type SlotMap,
} from './slot-map.ts';

/** The least time between two refreshes of the topology, however many commands find a slot elsewhere. */
const minRefreshPauseMs = 50;
/** How many times a clear is sent at most, each time to the current owner of its key. */
const maxAttempts = 5;

/**
 * Connects to all primaries of a Redis Cluster. Each primary has its own connection, with the checks of a single server:
 * when a primary is lost, the keys of the others stay in use. This file keeps its own slot map, so that no command is
 * sent before the checks of a connection, and no READ is sent twice. The map is refreshed every second, and immediately
 * when a primary is lost or reports a slot elsewhere. While a primary is lost, every known node is asked. A command goes
 * to the owner of its key's slot. Two replies redirect it:
 * - MOVED: nothing was executed. A read bypasses the cache; a clear is sent to the new owner.
 * - ASK: the slot is moving, and the key is no longer on this node. No command is redirected: if the move is reversed, the
 *   key could return after a redirected clear. Reads bypass the cache and clears are refused until the move ends.
 */
export function createClusterConnection(
  { nodes: seeds, access }: Extract<RedisAddress, { form: 'cluster' }>,
  options: CacheConnectionOptions,
): CacheConnection {
  // With TLS, connects by host name, because certificates contain names.
  const byName = access.tls !== undefined;
  /** By `host:port`: the primaries of the map. */
  const members = new Map<string, Primary>();
  let map: SlotMap | undefined;
  let state: CacheState = 'unavailable';
  let reason: Error | undefined;
  let refreshError: Error | undefined;
  let unsupported: UnsupportedRedis | undefined;
  let refreshing: Promise<void> | undefined;
  let refreshedAt = -Infinity;
  let running: Promise<void> | undefined;
  const closing = new AbortController();

  function addNode(address: string, at: HostPort): Promise<void> {
    const primary = createPrimary({
      redis: new Redis({ ...clientSettings, ...access, ...at }),
      scripts: options.scripts,
      isCluster: true,
      recover: (node) => options.recover(onlyOf(node)),
      onStateChange(next) {
        if (members.get(address) !== primary) return;
        publishState();
        if (next === 'unavailable') void refreshTopology();
      },
      onError: (error) => error instanceof SlotsMoving && void refreshTopology(),
    });
    members.set(address, primary);
    return primary.start().catch((error: UnsupportedRedis) => {
      unsupported = error;
      // The next refresh adds it again.
      members.delete(address);
    });
  }

  function removeNode(address: string): Promise<void> {
    const primary = members.get(address)!;
    members.delete(address);
    return primary.close();
  }

  const isConnected = (primary?: Primary) => primary?.state === 'usable' || primary?.state === 'recovering';
  const addresses = (): string[] => [...(map?.primaries.keys() ?? [])];

  function combinedState(): CacheState {
    const states = addresses().map((address) => members.get(address)?.state);
    if (map?.isWhole && states.every((one) => one === 'usable')) return 'usable';
    if (states.includes('usable')) return 'partial';
    return states.includes('recovering') ? 'recovering' : 'unavailable';
  }

  function whyNotUsable(): Error | undefined {
    const lost = addresses().find((address) => !isConnected(members.get(address)));
    if (lost) {
      const why = members.get(lost)?.reason ?? unsupported;
      return new CacheUnavailable(`${lost}: ${why?.message ?? 'not connected'}`);
    }
    if (map && !map.isWhole) return new CacheUnavailable('some slots belong to no primary');
    return refreshError;
  }

  /** Publishes the combined state of all primaries. */
  function publishState(): void {
    if (state === 'closed') return;
    const next = combinedState();
    const nextReason = next === 'unavailable' || next === 'partial' ? whyNotUsable() : undefined;
    const isNew = next !== state || nextReason?.message !== reason?.message;
    state = next;
    reason = nextReason;
    if (isNew) options.onStateChange?.(next, nextReason);
  }

  /** Asks the connected primaries, and every other known node while a primary is lost. */
  async function readViews(): Promise<ClusterView[]> {
    const connected = [...members].filter(([, primary]) => isConnected(primary));
    const views = connected.map(async ([address, primary]) => {
      const text = await primary.forClearing().clusterNodes();
      return readClusterNodes(text, map!.primaries.get(address)!, byName);
    });
    const isComplete = map?.isWhole === true && connected.length === map.primaries.size;
    const others = new Map(
      (isComplete ? [] : [...seeds, ...(map?.nodes ?? [])]).map((at) => [addressOf(at), at]),
    );
    for (const [address] of connected) others.delete(address);
    for (const at of others.values()) {
      const read = async (client: Redis) =>
        readClusterNodes(String(await client.cluster('NODES')), at, byName);
      views.push(withTemporaryClient({ ...at, ...access }, read));
    }
    const results = await Promise.allSettled(views);
    const errors = results.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []));
    refreshError = errors[0];
    if (errors.some(({ message }) => message.includes('cluster support disabled')))
      unsupported = new UnsupportedRedis('this Redis is not a cluster: use redis:// or redis-sentinel://');
    return results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  }

  async function refreshNow(): Promise<void> {
    const pauseMs = refreshedAt + minRefreshPauseMs - performance.now();
    if (pauseMs > 0) await sleep(pauseMs);
    const views = await readViews();
    refreshedAt = performance.now();
    if (closing.signal.aborted) return;
    if (views.length > 0) {
      const { primaries: known } = (map = mergeViews(views));
      for (const address of members.keys()) if (!known.has(address)) void removeNode(address);
      const added = [...known].filter(([address]) => !members.has(address));
      await Promise.all(added.map(([address, at]) => addNode(address, at)));
    }
    publishState();
  }

  /** Calls during a refresh share it: a missed change makes a later command fail, which triggers another refresh. */
  function refreshTopology(): Promise<void> {
    refreshing ??= refreshNow().finally(() => (refreshing = undefined));
    return refreshing;
  }

  async function refreshUntilClosed(): Promise<void> {
    while (!closing.signal.aborted) {
      await sleep(reconnectMs, undefined, { signal: closing.signal }).catch(() => {});
      if (!closing.signal.aborted) await refreshTopology();
    }
  }

  function ownerOf(key: string): Primary {
    const address = map?.owners[slotOf(key)];
    const primary = address === undefined ? undefined : members.get(address);
    if (primary) return primary;
    throw new CacheUnavailable(reason?.message ?? 'no primary is known for the key');
  }

  function primaries() {
    if (!map?.isWhole) throw new CacheUnavailable(reason?.message ?? 'some slots belong to no primary');
    return [...map.primaries].map(([address, at]) => {
      const primary = members.get(address);
      if (!primary) throw new CacheUnavailable(`${address} is not connected`);
      return { at, node: primary.forClearing() };
    });
  }

  return {
    get state() {
      return state;
    },
    async start() {
      await refreshTopology();
      if (unsupported) throw unsupported;
      running = refreshUntilClosed();
    },
    forReading: (key) => ownerOf(key).forReading(),
    async clear(key) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await ownerOf(key).forClearing().clear(key);
        } catch (error) {
          if (!(error instanceof SlotMoved) || attempt === maxAttempts) throw error;
          await refreshTopology();
        }
      }
    },
    primaries: () => primaries().map(({ node }) => node),
    async slotOwnership() {
      const views = await Promise.all(
        primaries().map(async ({ at, node }) => readClusterNodes(await node.clusterNodes(), at, byName)),
      );
      const [{ ownership, owners }] = views as [ClusterView];
      const isAgreed = views.every((view) => view.ownership === ownership && !view.isMoving);
      // The primaries of the map, which a sweep scans, must be exactly the owners that the nodes report.
      const isOurs =
        owners.length === views.length && owners.every(({ at }) => map?.primaries.has(addressOf(at)));
      if (isAgreed && isOurs) return ownership;
      await refreshTopology();
      throw new SlotsMoving('slots of the cluster are being moved');
    },
    async close() {
      closing.abort();
      await Promise.all([running, refreshing]);
      await Promise.all([...members.keys()].map(removeNode));
      if (state === 'closed') return;
      state = 'closed';
      options.onStateChange?.('closed');
    },
  };
}

/** Clears only the keys of one primary: for the clears that it missed while it was unavailable. */
function onlyOf(node: CacheNode): ClearTransport {
  /** A key of a moving slot may already be here, although another primary still serves it. */
  const ifServed = (deletion: Promise<number>) =>
    deletion.catch((error: unknown) => {
      if (error instanceof SlotsMoving) return 0;
      throw error;
    });
  const clear = (key: string) => ifServed(node.clear(key));
  const unlink = async (keys: Buffer[]) => {
    const counts = await Promise.all(keys.map((key) => ifServed(node.unlink([key]))));
    return counts.reduce((sum, count) => sum + count, 0);
  };
  return { clear, primaries: () => [{ ...node, clear, unlink }], slotOwnership: async () => 'one primary' };
}
