import type { Redis } from 'ioredis';

import { DeadlineExceeded, withDeadline } from './deadline.ts';
import { asCacheError, CacheRefused, type CacheError } from './errors.ts';
import type { View } from './keys.ts';
import type { Replication } from './replica-advice.ts';
import type { ProtocolScripts } from './scripts.ts';

/** How long a command may take, in milliseconds, before it fails. */
const COMMAND_TIMEOUT_MS = 250;
/** How long its reply may be on its way, in milliseconds, before the connection is given up. */
const HUNG_MS = 1000;

/** How many buckets one SCAN looks at: up to 4 ms of Redis's time. Smaller pages take longer in all. */
const SCAN_COUNT = 5000;

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

/** What the protocol asks of one Redis primary. Each call throws a CacheError within COMMAND_TIMEOUT_MS. */
export interface CacheNode {
  read(key: string, view: View, token: string, leaseMs: number): Promise<ReadReply>;
  fill(key: string, fill: Fill): Promise<'STORED' | 'REFUSED'>;
  /** What READ would serve of each view: the version, and the beginning of the payload. */
  peek(key: string): Promise<{ version: number; beginning: string }[]>;
  /** Answers how many keys the clear counts for. */
  clear(key: string): Promise<number>;
  incarnation(): Promise<string>;
  /** One page of keys; '0' is the first cursor and the last. Keys are bytes: other programs' need not be text. */
  scan(cursor: string, glob: string): Promise<{ cursor: string; keys: Buffer[] }>;
  /** Answers how many of the keys were there. */
  unlink(keys: Buffer[]): Promise<number>;
  /** In bytes; a limit of 0 means that there is none. */
  memory(): Promise<{ usedBytes: number; limitBytes: number }>;
  replication(): Promise<Replication>;
  /** What CLUSTER NODES answers. */
  clusterNodes(): Promise<string>;
  isInCluster(): Promise<boolean>;
  ping(): Promise<void>;
}

interface ScriptCommands {
  cacheRead(key: string, view: View, token: string, leaseMs: number): Promise<[string, string, string]>;
  cacheFill(
    key: string,
    view: View,
    lease: string,
    ttlMs: number,
    version: number,
    payload: string,
  ): Promise<'STORED' | 'REFUSED'>;
  cachePeek(key: string): Promise<[string, string][]>;
  cacheClear(key: string): Promise<number>;
  cacheIncarnation(): Promise<string>;
}

export interface CacheNodeHooks {
  /** Closes the connection, and hears why: Redis hangs, or `isOver`. */
  giveUp: (reason: CacheError) => void;
  /** Whether what Redis answered means that the connection is of no use any more. */
  isOver: (error: unknown) => boolean;
  /** Hears of each error of a command. */
  onError?: ((error: CacheError) => void) | undefined;
  /** A command may not touch keys of several slots. */
  isCluster?: boolean | undefined;
}

/** Speaks the protocol over `redis`. */
export function createCacheNode(
  redis: Redis,
  scripts: ProtocolScripts,
  { giveUp, isOver, onError, isCluster = false }: CacheNodeHooks,
): CacheNode {
  redis.defineCommand('cacheRead', { numberOfKeys: 1, lua: scripts.read });
  redis.defineCommand('cacheFill', { numberOfKeys: 1, lua: scripts.fill });
  redis.defineCommand('cachePeek', { numberOfKeys: 1, lua: scripts.peek });
  redis.defineCommand('cacheClear', { numberOfKeys: 1, lua: scripts.clear });
  redis.defineCommand('cacheIncarnation', { numberOfKeys: 0, lua: scripts.incarnation });
  const run = redis as unknown as ScriptCommands;

  async function answer<T>(command: string, reply: Promise<T>): Promise<T> {
    const heard = redis.stream?.bytesRead;
    try {
      return await withDeadline(reply, COMMAND_TIMEOUT_MS);
    } catch (error) {
      const cacheError = asCacheError(command, error);
      if (isOver(error)) giveUp(cacheError);
      if (error instanceof DeadlineExceeded) void giveUpIfHung(reply, heard, cacheError);
      onError?.(cacheError);
      throw cacheError;
    }
  }

  /**
   * A reply that waits behind others only fails its command; it is dropped when it comes. But a primary that slept
   * through a failover must not answer on this connection when it wakes. One that sleeps is silent, so the first command
   * that is sent after its last byte, a PING within a second at the latest, closes the connection; and where bytes were
   * still on their way then, the limit on one reply does. So it has two seconds at most, and no failover is as quick.
   */
  async function giveUpIfHung(reply: Promise<unknown>, heard: number, reason: CacheError): Promise<void> {
    if (redis.stream.bytesRead === heard) return giveUp(reason);
    await withDeadline(reply, HUNG_MS - COMMAND_TIMEOUT_MS).catch((error: unknown) => {
      if (error instanceof DeadlineExceeded) giveUp(reason);
    });
  }

  /** What is sent from here to the end of this turn of the event loop leaves in one write, and comes in one read. */
  function gather(): void {
    const { stream } = redis;
    if (!stream || stream.writableCorked > 0) return;
    stream.cork();
    process.nextTick(() => stream.uncork());
  }

  return {
    async read(key, view, token, leaseMs) {
      const reply = await answer('READ', run.cacheRead(key, view, token, leaseMs));
      if (reply[0] === 'HIT') return { status: 'HIT', version: Number(reply[1]), payload: reply[2] };
      return reply[0] === 'FILL' ? { status: 'FILL', lease: reply[1] } : { status: 'WAIT' };
    },
    fill(key, { view, lease, ttlMs, version, payload }) {
      return answer('FILL', run.cacheFill(key, view, lease, ttlMs, version, payload));
    },
    async peek(key) {
      const entries = await answer('PEEK', run.cachePeek(key));
      return entries.map(([version, beginning]) => ({ version: Number(version), beginning }));
    },
    clear(key) {
      // Clears come in hundreds, of a batch of events or of a page of a scan: a write for each costs more than the clear.
      gather();
      return answer('CLEAR', run.cacheClear(key));
    },
    incarnation: () => answer('INCARNATION', run.cacheIncarnation()),
    async scan(cursor, glob) {
      const page = await answer('SCAN', redis.scanBuffer(cursor, 'MATCH', glob, 'COUNT', SCAN_COUNT));
      return { cursor: page[0].toString(), keys: page[1] };
    },
    async unlink(keys) {
      const groups = isCluster ? keys.map((key) => [key]) : [keys];
      const counts = await Promise.all(groups.map((group) => answer('UNLINK', redis.unlink(group))));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async clusterNodes() {
      return String(await answer('CLUSTER NODES', redis.cluster('NODES')));
    },
    async isInCluster() {
      return (await answer('INFO', redis.info('cluster'))).includes('cluster_enabled:1');
    },
    async memory() {
      const info = await answer('INFO', redis.info('memory'));
      const bytes = (field: string) => Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(info)?.[1]);
      return { usedBytes: bytes('used_memory'), limitBytes: bytes('maxmemory') };
    },
    async replication() {
      const info = await answer('INFO', redis.info('replication'));
      const name = 'min-replicas-to-write';
      // Its user need not have the right to that.
      const setting = await answer('CONFIG', redis.config('GET', name)).catch((error: Error) => {
        if (error instanceof CacheRefused) return undefined;
        throw error;
      });
      const minToWrite = setting === undefined ? undefined : Number((setting as string[])[1]);
      return { replicas: Number(/^connected_slaves:(\d+)/m.exec(info)?.[1]), minToWrite };
    },
    async ping() {
      await answer('PING', redis.ping());
    },
  };
}
