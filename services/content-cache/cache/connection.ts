import type { View } from '@content-platform/contract';

/** The Lua sources of the protocol, which docs/concepts/consistency.md describes. Redis runs each script atomically. */
export type ProtocolScripts = Record<'read' | 'fill' | 'clear' | 'peek' | 'incarnation', string>;

export type ReadReply =
  | { status: 'HIT'; version: number; payload: string }
  | { status: 'WAIT' }
  | { status: 'FILL'; lease: string };

export interface Fill {
  view: View;
  lease: string;
  ttlMs: number;
  version: number;
  payload: string;
}

/** In bytes; a limit of 0 means none. `evictedKeys` counts from the start of Redis. */
export interface MemoryUsage {
  usedBytes: number;
  limitBytes: number;
  evictedKeys: number;
}

export interface Replication {
  replicas: number;
  /** min-replicas-to-write of the primary; undefined if the Redis user may not read the configuration */
  minToWrite: number | undefined;
}

/** The commands of the protocol at one Redis primary. Each rejects with a CacheError after at most 250 ms. */
export interface CacheNode {
  // read() and peek() send the run_id that incarnation() has found on the same connection, and find nothing without it.
  read(key: string, view: View, token: string, leaseMs: number): Promise<ReadReply>;
  fill(key: string, fill: Fill): Promise<'STORED' | 'REFUSED'>;
  /** For each view that READ would serve: the version, and the first bytes of the payload. */
  peek(key: string): Promise<{ isLeased: boolean; views: { version: number; payloadStart: string }[] }>;
  /** Returns the number of keys that the clear deleted. */
  clear(key: string): Promise<number>;
  /** Returns `<run_id>-<master_replid>`. */
  incarnation(): Promise<string>;
  /** One page of keys; '0' is the first and the last cursor. Keys of other programs need not be UTF-8. */
  scan(cursor: string, glob: string): Promise<{ cursor: string; keys: Buffer[] }>;
  /** Returns how many of the keys existed. */
  unlink(keys: Buffer[]): Promise<number>;
  memory(): Promise<MemoryUsage>;
  replication(): Promise<Replication>;
}

/** The part of the connection that clears use. */
export interface ClearTransport {
  /** Sends CLEAR to the primary that holds `key`. Throws CacheError. */
  clear(key: string): Promise<number>;
  /** Returns every primary, for sweeps. Throws CacheUnavailable if one is not connected. */
  primaries(): CacheNode[];
  /** Returns the owners of all slots as a text, which changes if a slot moves. Throws SlotsMoving, CacheUnavailable. */
  slotOwnership(): Promise<string>;
}

/**
 * - unavailable: not connected, or not yet checked; nothing is sent.
 * - recovering: connected and checked; clears are carried out, reads bypass the cache.
 * - usable: the clears that were refused before have been carried out; reads use the cache.
 * - closed: permanently.
 */
export type PrimaryState = 'unavailable' | 'recovering' | 'usable' | 'closed';

/** State of all primaries. usable: all are usable. partial: some are; reads of the other primaries' keys bypass the cache. */
export type CacheState = PrimaryState | 'partial';

/** The one interface between the protocol and the ways to reach Redis: a single server, sentinels or a cluster. */
export interface CacheConnection extends ClearTransport {
  readonly state: CacheState;
  /** Resolves after the first attempt to connect; more follow every second until close(). Throws UnsupportedRedis. */
  start(): Promise<void>;
  /** Returns the primary that holds `key`, for reads. Throws CacheUnavailable unless that primary is usable. */
  forReading(key: string): CacheNode;
  close(): Promise<void>;
}

export interface CacheConnectionOptions {
  /** one of the forms of parseRedisUrl */
  url: string;
  /** Carries out refused clears after each connect, before the cache is used; in a cluster for each primary (`part`). */
  recover: (part?: ClearTransport) => Promise<void>;
  /** Called with each new state, and with each new reason why Redis is unusable. */
  onStateChange?: (state: CacheState, reason?: Error) => void;
  scripts: ProtocolScripts;
}

/** The cache is unavailable or refused a command. A read then continues without the cache; a clear was not carried out. */
export abstract class CacheError extends Error {}

/** Redis did not respond: it is unreachable, hangs, or is not yet usable after a reconnect. */
export class CacheUnavailable extends CacheError {
  override name = 'CacheUnavailable';
}

/** Redis refused the command, or was restarted or replaced during a sweep. */
export class CacheRefused extends CacheError {
  override name = 'CacheRefused';
}

/** The server is now a replica: the primary must be located again. */
export class DemotedToReplica extends CacheRefused {}

/** Too few replicas follow the server: a failover may have replaced it. */
export class TooFewReplicas extends CacheRefused {}

/** Slots of the cluster are moving, or moved during the request. */
export class SlotsMoving extends CacheRefused {}

/** The key's slot belongs to another node. Nothing was executed. */
export class SlotMoved extends SlotsMoving {}

/** The protocol cannot run on this Redis: too old a version, a user without INFO, or the wrong form of REDIS_URL. */
export class UnsupportedRedis extends CacheError {
  override name = 'UnsupportedRedis';
}

/** Errors by the first word of Redis's reply. */
const refusals: Record<string, typeof CacheRefused> = {
  READONLY: DemotedToReplica,
  MASTERDOWN: DemotedToReplica,
  NOREPLICAS: TooFewReplicas,
  MOVED: SlotMoved,
  // The slot is moving, and the key is no longer on this node.
  ASK: SlotsMoving,
};

/** Maps the rejection of an ioredis command to a CacheError. */
export function toCacheError(command: string, error: unknown): CacheError {
  const { name, message } = error as Error;
  if (name !== 'ReplyError') return new CacheUnavailable(`${command}: ${message}`, { cause: error });
  if (message.includes('NOINCARNATION')) {
    return new UnsupportedRedis(
      'Redis does not report run_id and master_replid to scripts: give its user the right to call INFO (ACL: +info); if INFO works outside of scripts, as in Redis Cloud and Azure Managed Redis, this Redis cannot be used',
    );
  }
  if (message.includes('compiling script')) {
    return new UnsupportedRedis(
      'This server does not support script flags (#!lua): use Redis 7, Valkey 7.2 or newer',
    );
  }
  const Refusal = refusals[message.split(' ', 1)[0]!] ?? CacheRefused;
  return new Refusal(`${command}: ${message}`, { cause: error });
}
