import type { CacheNode } from './node.ts';
import type { PrimaryState } from './primary.ts';
import type { ProtocolScripts } from './scripts.ts';

/** Of all primaries together. usable: each of them is. partial: some are, and what the others hold is passed by. */
export type CacheState = PrimaryState | 'partial';

export interface CacheConnectionOptions {
  /** one of the forms of parseRedisUrl */
  url: string;
  /**
   * Runs after each connect, before the cache is used: clears what could not be cleared meanwhile. In a cluster that is
   * done for each primary on its own, in its part.
   */
  recover: (part?: ClearingReach) => Promise<void>;
  /** Hears of each new state, and of each new reason to stay away. */
  onStateChange?: ((state: CacheState, reason?: Error) => void) | undefined;
  /** Those of a server that may be alone, unless others are given. */
  scripts?: ProtocolScripts | undefined;
}

/** What clears go to. */
export interface ClearingReach {
  /** CLEAR at the primary that holds `key`. @throws CacheError */
  clear(key: string): Promise<number>;
  /** Every primary, for sweeps. @throws CacheUnavailable when one is away */
  primaries(): CacheNode[];
  /**
   * Who owns which slots, as every primary tells it: the same text as long as no slot moves.
   *
   * @throws SlotsUnsettled while they do not agree, or a slot is on its way; CacheUnavailable when a primary is away
   */
  slotMap(): Promise<string>;
}

export interface CacheConnection extends ClearingReach {
  readonly state: CacheState;
  /** How many times the connection was given up because Redis did not answer in time. */
  readonly timeouts: number;
  /**
   * Makes the first attempt to connect and goes on trying in the background, once a second, until close().
   * Resolves when that attempt is over; Redis may be away then.
   *
   * @throws CacheUnfit when the first attempt finds a Redis that cannot keep the promise
   */
  start(): Promise<void>;
  /** The primary that holds `key`, for reads. @throws CacheUnavailable unless usable */
  forReading(key: string): CacheNode;
  close(): Promise<void>;
}
