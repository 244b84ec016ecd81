import { parseRedisUrl } from '@content-platform/chassis';
import { Redis } from 'ioredis';
import {
  type CacheConnection,
  type CacheConnectionOptions,
  type ClearTransport,
  type MemoryUsage,
  type ProtocolScripts,
  TooFewReplicas,
} from './connection.ts';
import { createCacheClearer, type CacheClearer, type UnmanagedKeys } from './protocol/cache-clearer.ts';
import { createRecordCache, type RecordCacheOptions } from './protocol/record-cache.ts';
import { createScripts, type ReplicaGuard } from './protocol/scripts.ts';
import { createClusterConnection } from './redis/cluster.ts';
import { clientSettings, createPrimary } from './redis/primary.ts';
import { replicaAdvice } from './redis/replica-advice.ts';
import { openThroughSentinels } from './redis/sentinels.ts';

export { CacheError, CacheUnavailable, UnsupportedRedis } from './connection.ts';
export type { CacheState, MemoryUsage } from './connection.ts';
export type { CacheClearer } from './protocol/cache-clearer.ts';
export { type LoadedRecord, tooLarge } from './protocol/record-cache.ts';

export interface ContentCacheOptions
  extends Omit<RecordCacheOptions, 'connection'>, Pick<CacheConnectionOptions, 'url' | 'onStateChange'> {
  replicaGuard: ReplicaGuard;
  unmanagedKeys: UnmanagedKeys;
  /**
   * Carries out the clears that were refused while Redis was unavailable. Runs after each connect, before reads use the
   * cache. If it rejects, the cache stays unused, and the hook runs again a second later. In a cluster it runs for each
   * primary with `isWhole` false: `clearer` reaches that primary's keys only, so the clears must be kept for the others.
   */
  recover: (clearer: CacheClearer, isWhole: boolean) => Promise<void>;
  /** For the proofs: scripts that replace those of `replicaGuard`. */
  scripts?: ProtocolScripts;
}

export type ContentCache = ReturnType<typeof createContentCache>;

/** The cache of content records. A read after an acknowledged clear has every change that was committed before the clear. */
export function createContentCache(options: ContentCacheOptions) {
  const { replicaGuard, unmanagedKeys, recover, scripts = createScripts(replicaGuard) } = options;
  const clearerOf = (transport: ClearTransport) => createCacheClearer(transport, unmanagedKeys);
  const connection = createCacheConnection({
    ...options,
    scripts,
    recover: (part) => (part ? recover(clearerOf(part), false) : recover(clearer, true)),
  });
  const clearer = clearerOf(connection);

  return {
    ...createRecordCache({ ...options, connection }),
    ...clearer,
    get state() {
      return connection.state;
    },
    start: connection.start,
    close: connection.close,
    /** Returns the sums over all primaries. Throws CacheError. */
    async memory(): Promise<MemoryUsage> {
      const nodes = await Promise.all(connection.primaries().map((primary) => primary.memory()));
      const sum = (field: keyof MemoryUsage) => nodes.reduce((total, node) => total + node[field], 0);
      return { usedBytes: sum('usedBytes'), limitBytes: sum('limitBytes'), evictedKeys: sum('evictedKeys') };
    },
    /** Returns the setting to change if a failover could restore cleared records. Throws CacheError. */
    async advice() {
      const primaries = await Promise.all(connection.primaries().map((node) => node.replication()));
      return replicaAdvice(primaries, replicaGuard.atLeast);
    },
  };
}

/** Creates the connection of a process to Redis: to a single server, through sentinels or to a cluster. */
export function createCacheConnection(options: CacheConnectionOptions): CacheConnection {
  const address = parseRedisUrl(options.url);
  if (address.form === 'cluster') return createClusterConnection(address, options);
  const hasSentinels = address.form === 'sentinel';
  const primary = createPrimary({
    redis: hasSentinels ? openThroughSentinels(address) : new Redis(address.url, clientSettings),
    scripts: options.scripts,
    isCluster: false,
    recover: () => options.recover(),
    onStateChange: (state, reason) => options.onStateChange?.(state, reason),
    onError(error) {
      // A primary without enough replicas may have been replaced: reconnecting asks the sentinels.
      if (hasSentinels && error instanceof TooFewReplicas) primary.disconnect(error);
    },
  });
  return {
    get state() {
      return primary.state;
    },
    start: primary.start,
    forReading: primary.forReading,
    clear: async (key) => primary.forClearing().clear(key),
    primaries: () => [primary.forClearing()],
    slotOwnership: async () => 'all slots',
    close: primary.close,
  };
}
