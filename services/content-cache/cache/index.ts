import type { CacheState, ClearTransport, ProtocolScripts } from './connection.ts';
import { createCacheClearer, type CacheClearer, type UnmanagedKeys } from './protocol/cache-clearer.ts';
import { createRecordCache, type RecordCacheOptions } from './protocol/record-cache.ts';
import { createScripts, type ReplicaGuard } from './protocol/scripts.ts';
import { createCacheConnection, type CacheConnectionOptions } from './redis/connect.ts';
import { adviceFor } from './redis/replica-advice.ts';

export { CacheError, CacheUnavailable, CacheUnfit } from './errors.ts';
export type { CacheState, View } from './connection.ts';
export type { CacheClearer } from './protocol/cache-clearer.ts';
export type { LoadedRecord, LoadRecord } from './protocol/record-cache.ts';

export interface ContentCacheOptions
  extends Omit<RecordCacheOptions, 'connection'>, Pick<CacheConnectionOptions, 'url' | 'onStateChange'> {
  /** Default: a primary needs no replicas. */
  replicaGuard?: ReplicaGuard;
  unmanagedKeys: UnmanagedKeys;
  /**
   * Carries out the clears that were refused while Redis was unavailable. Runs after each connect, before reads use the
   * cache again. If it rejects, the cache stays unused and the hook is called again a second later.
   *
   * In a cluster it runs for each primary with `isWhole` false: `clearer` then reaches the keys of that primary only, so
   * the refused clears must be kept for the other primaries.
   */
  recover: (clearer: CacheClearer, isWhole: boolean) => Promise<void>;
  /** For the proofs: scripts that replace those of `replicaGuard`. */
  scripts?: ProtocolScripts;
}

export type ContentCache = ReturnType<typeof createContentCache>;

/**
 * The cache of content records in Redis. An acknowledged clear is final: every change that was committed before its
 * clear was sent is in every read that starts after the acknowledgement.
 */
export function createContentCache(options: ContentCacheOptions) {
  const { url, onStateChange, unmanagedKeys, ttlMs, negativeTtlMs } = options;
  const { replicaGuard = { atLeast: 0, maxLagSeconds: 0 } } = options;
  const connection = createCacheConnection({
    url,
    onStateChange,
    recover: (part) => (part ? options.recover(clearerOf(part), false) : options.recover(clearer, true)),
    scripts: options.scripts ?? createScripts(replicaGuard),
  });
  const clearerOf = (transport: ClearTransport) => createCacheClearer(transport, unmanagedKeys);
  const clearer = clearerOf(connection);

  return {
    ...createRecordCache({ connection, ttlMs, negativeTtlMs }),
    ...clearer,
    get state(): CacheState {
      return connection.state;
    },
    /** How many times a connection was closed because Redis did not answer in time. */
    get timeouts() {
      return connection.timeouts;
    },
    start: connection.start,
    close: connection.close,
    /** Sum over all primaries, in bytes; a limit of 0 means none. `evictedKeys` since their start. @throws CacheError */
    async memory() {
      const total = { usedBytes: 0, limitBytes: 0, evictedKeys: 0 };
      for (const node of await Promise.all(connection.primaries().map((primary) => primary.memory()))) {
        total.usedBytes += node.usedBytes;
        total.limitBytes += node.limitBytes;
        total.evictedKeys += node.evictedKeys;
      }
      return total;
    },
    /** One line on what to set if a failover could bring back cleared records. @throws CacheError */
    async advice() {
      const primaries = await Promise.all(connection.primaries().map((node) => node.replication()));
      return adviceFor(primaries, replicaGuard.atLeast);
    },
  };
}
