import { createClearing, type Clearing, type UnmanagedKeys } from './clear.ts';
import { createCacheConnection } from './connect.ts';
import type { CacheState, ClearingReach } from './connection.ts';
import { createRecordCache, type RecordCache } from './record-cache.ts';
import { adviceFor } from './replica-advice.ts';
import { createScripts, type ProtocolScripts, type ReplicaGuard } from './scripts.ts';

export { CacheError, CacheRefused, CacheUnavailable, CacheUnfit } from './errors.ts';
export type { Clearing, UnmanagedKeys } from './clear.ts';
export type { CacheState } from './connection.ts';
export type { View } from './keys.ts';
export type { CacheRead, LoadedRecord, LoadRecord } from './record-cache.ts';

export interface ContentCacheOptions {
  /** one of the forms of parseRedisUrl */
  url: string;
  /** Without it a primary may be without replicas. */
  replicaGuard?: ReplicaGuard;
  /** how long a record is cached, in milliseconds, give or take a tenth */
  ttlMs: number;
  /** the same for the fact that a record does not exist */
  negativeTtlMs: number;
  unmanagedKeys: UnmanagedKeys;
  /**
   * Carries out the clears that were refused while Redis was away: runs after each connect, before reads use the cache
   * again. When it throws, the cache stays unused, and it is called again a second later.
   *
   * In a cluster it runs for each primary, and `isWhole` is false: `clearing` reaches what that one holds, and the clears
   * are not done yet for the others.
   */
  recover: (clearing: Clearing, isWhole: boolean) => Promise<void>;
  /** For the log: each new state, and each new reason to stay away. */
  onStateChange?: (state: CacheState, reason?: Error) => void;
  /** Only the proofs pass others; the guard is theirs then. */
  scripts?: ProtocolScripts;
}

export interface ContentCache extends RecordCache, Clearing {
  readonly state: CacheState;
  /** How many times the connection was given up because Redis did not answer in time. */
  readonly timeouts: number;
  /**
   * Connects, and stays connected until close(). Resolves when the first attempt is over, be Redis there or not.
   *
   * @throws CacheUnfit when Redis is there and cannot keep the promise: the process must stop with that one line
   */
  start(): Promise<void>;
  /** Sum over all primaries, in bytes; a limit of 0 means none. @throws CacheError */
  memory(): Promise<{ usedBytes: number; limitBytes: number }>;
  /** What to set where primaries have replicas that are not counted on: one line. @throws CacheError */
  advice(): Promise<string | undefined>;
  close(): Promise<void>;
}

/**
 * The cache of content records in Redis, of which an acknowledged clear is final: every change that was committed
 * before its clear was sent is in every read that starts after the acknowledgement.
 */
export function createContentCache(options: ContentCacheOptions): ContentCache {
  const replicaGuard = options.replicaGuard ?? { atLeast: 0, maxLagSeconds: 0 };
  const connection = createCacheConnection({
    url: options.url,
    recover: (part) => (part ? options.recover(clearingOf(part), false) : options.recover(clearing, true)),
    onStateChange: options.onStateChange,
    scripts: options.scripts ?? createScripts(replicaGuard),
  });
  const clearingOf = (reach: ClearingReach) =>
    createClearing({ connection: reach, unmanagedKeys: options.unmanagedKeys });
  const clearing = clearingOf(connection);
  const records = createRecordCache({
    connection,
    ttlMs: options.ttlMs,
    negativeTtlMs: options.negativeTtlMs,
  });

  return {
    ...records,
    ...clearing,
    get state() {
      return connection.state;
    },
    get timeouts() {
      return connection.timeouts;
    },
    start: connection.start,
    close: connection.close,
    async memory() {
      const nodes = await Promise.all(connection.primaries().map((node) => node.memory()));
      return {
        usedBytes: nodes.reduce((sum, node) => sum + node.usedBytes, 0),
        limitBytes: nodes.reduce((sum, node) => sum + node.limitBytes, 0),
      };
    },
    async advice() {
      const primaries = await Promise.all(connection.primaries().map((node) => node.replication()));
      return adviceFor(primaries, replicaGuard);
    },
  };
}
