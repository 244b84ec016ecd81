import type { View } from '@content-platform/contract';
import type { Redis } from 'ioredis';
import {
  type CacheError,
  type CacheNode,
  CacheRefused,
  type ProtocolScripts,
  toCacheError,
} from '../connection.ts';

/** A command fails after this time. */
const commandTimeoutMs = 250;
/** The connection is closed when a reply takes this long. */
const hungMs = 1000;
/** Buckets per SCAN: up to 4 ms of Redis's time. Smaller pages take longer in total. */
const scanCount = 5000;

/** The protocol's commands, and the commands that manage the connection. */
export interface RedisNode extends CacheNode {
  /** Returns the reply to CLUSTER NODES. */
  clusterNodes(): Promise<string>;
  isInCluster(): Promise<boolean>;
  ping(): Promise<void>;
}

interface ScriptCommands {
  cacheRead(
    key: string,
    view: View,
    token: string,
    leaseMs: number,
    runId: string,
  ): Promise<[string, string, string]>;
  cacheFill(key: string, ...fill: (string | number)[]): Promise<'STORED' | 'REFUSED'>;
  cachePeek(key: string, runId: string): Promise<[number, ...[string, string][]]>;
  cacheClear(key: string): Promise<number>;
  cacheIncarnation(): Promise<string>;
}

interface RedisNodeHooks {
  /** Called with each error of a command. */
  onError: (error: CacheError) => void;
  /** Called when Redis hangs: the connection must be closed. */
  onHung: (reason: CacheError) => void;
  /** In a cluster, a command may not touch keys of several slots. */
  isCluster: boolean;
}

class DeadlineExceeded extends Error {}

/**
 * Waits for `reply`, at most `ms`. After the timer, sockets are read once more: a reply that arrived while this process was
 * busy counts as in time. The commandTimeout of ioredis would mistake a busy process for a dead Redis.
 */
export function withDeadline<T>(reply: Promise<T>, ms: number): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const timer = setTimeout(() => {
    setImmediate(() => reject(new DeadlineExceeded(`no answer within ${ms} ms`)));
  }, ms);
  void reply.then(resolve, reject).then(() => clearTimeout(timer));
  return promise;
}

/** Returns a number of a reply to INFO. */
const numberIn = (info: string, field: string): number =>
  Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(info)?.[1]);

/** Sends the protocol's commands over `redis`. */
export function createRedisNode(
  redis: Redis,
  scripts: ProtocolScripts,
  { onError, onHung, isCluster }: RedisNodeHooks,
): RedisNode {
  redis.defineCommand('cacheRead', { numberOfKeys: 1, lua: scripts.read });
  redis.defineCommand('cacheFill', { numberOfKeys: 1, lua: scripts.fill });
  redis.defineCommand('cachePeek', { numberOfKeys: 1, lua: scripts.peek });
  redis.defineCommand('cacheClear', { numberOfKeys: 1, lua: scripts.clear });
  redis.defineCommand('cacheIncarnation', { numberOfKeys: 0, lua: scripts.incarnation });
  const run = redis as unknown as ScriptCommands;
  /** The run_id of the connected server, from the latest call of incarnation(). */
  let runId = '';

  async function replyTo<T>(command: string, reply: Promise<T>): Promise<T> {
    const bytesBefore = redis.stream?.bytesRead;
    try {
      return await withDeadline(reply, commandTimeoutMs);
    } catch (error) {
      const cacheError = toCacheError(command, error);
      onError(cacheError);
      if (error instanceof DeadlineExceeded) void checkIfHung(reply, bytesBefore, cacheError);
      throw cacheError;
    }
  }

  /**
   * A slow reply fails only its own command. But a primary that was suspended during a failover must not answer on this
   * connection when it resumes. A suspended primary sends nothing, so the first command after its last byte (a PING within
   * a second at the latest) closes the connection; if bytes were still in transit, `hungMs` does. A suspended primary is
   * disconnected after at most two seconds, and every failover takes longer.
   */
  async function checkIfHung(reply: Promise<unknown>, bytesBefore: number, reason: CacheError) {
    if (redis.stream.bytesRead === bytesBefore) return onHung(reason);
    await withDeadline(reply, hungMs - commandTimeoutMs).catch((error: unknown) => {
      if (error instanceof DeadlineExceeded) onHung(reason);
    });
  }

  /** Sends all commands of this turn of the event loop in one write: hundreds of writes would cost more than the commands. */
  function corkUntilNextTick(): void {
    const { stream } = redis;
    if (!stream || stream.writableCorked > 0) return;
    stream.cork();
    process.nextTick(() => stream.uncork());
  }

  const info = (...sections: string[]) => replyTo('INFO', redis.info(...sections));

  return {
    async read(key, view, token, leaseMs) {
      corkUntilNextTick();
      const reply = await replyTo('READ', run.cacheRead(key, view, token, leaseMs, runId));
      if (reply[0] === 'HIT') return { status: 'HIT', version: Number(reply[1]), payload: reply[2] };
      return reply[0] === 'FILL' ? { status: 'FILL', lease: reply[1] } : { status: 'WAIT' };
    },
    fill(key, { view, lease, ttlMs, version, payload }) {
      corkUntilNextTick();
      return replyTo('FILL', run.cacheFill(key, view, lease, ttlMs, version, payload));
    },
    async peek(key) {
      const [isLeased, ...views] = await replyTo('PEEK', run.cachePeek(key, runId));
      return {
        isLeased: isLeased === 1,
        views: views.map(([version, payloadStart]) => ({ version: Number(version), payloadStart })),
      };
    },
    clear(key) {
      corkUntilNextTick();
      return replyTo('CLEAR', run.cacheClear(key));
    },
    async incarnation() {
      const life = await replyTo('INCARNATION', run.cacheIncarnation());
      [runId] = life.split('-', 1) as [string];
      return life;
    },
    async scan(cursor, glob) {
      const page = await replyTo('SCAN', redis.scanBuffer(cursor, 'MATCH', glob, 'COUNT', scanCount));
      return { cursor: page[0].toString(), keys: page[1] };
    },
    async unlink(keys) {
      const groups = isCluster ? keys.map((key) => [key]) : [keys];
      const counts = await Promise.all(groups.map((group) => replyTo('UNLINK', redis.unlink(group))));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async memory() {
      const text = await info('memory', 'stats');
      return {
        usedBytes: numberIn(text, 'used_memory'),
        limitBytes: numberIn(text, 'maxmemory'),
        evictedKeys: numberIn(text, 'evicted_keys'),
      };
    },
    async replication() {
      const replicas = numberIn(await info('replication'), 'connected_slaves');
      try {
        const [, value] = (await replyTo('CONFIG', redis.config('GET', 'min-replicas-to-write'))) as string[];
        return { replicas, minToWrite: Number(value) };
      } catch (error) {
        // The Redis user may not call CONFIG.
        if (error instanceof CacheRefused) return { replicas, minToWrite: undefined };
        throw error;
      }
    },
    async clusterNodes() {
      return String(await replyTo('CLUSTER NODES', redis.cluster('NODES')));
    },
    async isInCluster() {
      return (await info('cluster')).includes('cluster_enabled:1');
    },
    async ping() {
      await replyTo('PING', redis.ping());
    },
  };
}
