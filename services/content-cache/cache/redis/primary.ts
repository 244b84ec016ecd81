import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { HostPort, RedisAccess } from '@content-platform/chassis';
import {
  type CacheError,
  CacheUnavailable,
  DemotedToReplica,
  type PrimaryState,
  type ProtocolScripts,
  UnsupportedRedis,
} from '../connection.ts';
import { createRedisNode, withDeadline, type RedisNode } from './node.ts';

const connectTimeoutMs = 1000;
/** The pause between two attempts to connect: a hanging Redis costs a process one timeout a second. */
export const reconnectMs = 1000;
const pingIntervalMs = 1000;

export const clientSettings = {
  lazyConnect: true,
  // Our own loop reconnects: nothing may be sent before the checks of a new connection.
  retryStrategy: () => null,
  // A READ sent twice would wait for its own lease.
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  // The ready check is INFO without a time limit. Our first command, INCARNATION, calls INFO and has a time limit.
  enableReadyCheck: false,
  protocol: 2,
  disableClientInfo: true,
} as const;

interface PrimaryOptions {
  /** A client with `clientSettings` that has not connected yet. */
  redis: Redis;
  scripts: ProtocolScripts;
  /** Whether this is one primary of a cluster. */
  isCluster: boolean;
  /** As in CacheConnectionOptions. */
  recover: (node: RedisNode) => Promise<void>;
  onStateChange: (state: PrimaryState, reason?: Error) => void;
  /** Called with each error of a command. */
  onError: (error: CacheError) => void;
}

export type Primary = ReturnType<typeof createPrimary>;

/** Keeps this process's one connection to a primary. Closes it when Redis hangs or becomes a replica, and reconnects. */
export function createPrimary(options: PrimaryOptions) {
  const { redis, scripts, isCluster } = options;
  let state: PrimaryState = 'unavailable';
  let reason: Error | undefined;
  let socketError: Error | undefined;
  let running: Promise<void> | undefined;
  const closing = new AbortController();

  redis.on('error', (error: Error) => (socketError = error));
  const node = createRedisNode(redis, scripts, { onError, onHung: disconnect, isCluster });

  function onError(error: CacheError): void {
    if (error instanceof DemotedToReplica) disconnect(error);
    options.onError(error);
  }

  /** Destroys the socket, so that commands in flight fail at once. Reconnecting resolves the host name again. */
  function disconnect(why: CacheError): void {
    redis.stream.destroy(why);
  }

  function enter(next: PrimaryState, why?: Error): void {
    const isNew = next !== state || why?.message !== reason?.message;
    state = next;
    reason = why;
    if (isNew) options.onStateChange(next, why);
  }

  /** Connects and waits until the connection is lost. Always rejects, with the reason of the loss. */
  async function connectUntilLost(onUsable: () => void): Promise<never> {
    socketError = undefined;
    const { promise: lost, reject } = Promise.withResolvers<never>();
    redis.once('end', () =>
      reject(new CacheUnavailable(socketError?.message ?? 'the connection was closed')),
    );
    lost.catch(() => {});
    let pings: NodeJS.Timeout | undefined;
    try {
      await withDeadline(redis.connect(), connectTimeoutMs).catch((error: Error) => {
        throw new CacheUnavailable(socketError?.message ?? error.message);
      });
      // While the sentinels were asked, close() had no socket to destroy.
      closing.signal.throwIfAborted();
      await node.incarnation();
      // Otherwise clears would never reach the other nodes of its cluster.
      if (!isCluster && (await node.isInCluster()))
        throw new UnsupportedRedis('this Redis is part of a cluster: use redis-cluster://');
      pings = setInterval(() => void node.ping().catch(() => {}), pingIntervalMs);
      enter('recovering');
      await Promise.race([options.recover(node), lost]);
      enter('usable');
      onUsable();
      return await lost;
    } finally {
      clearInterval(pings);
      redis.stream?.destroy();
    }
  }

  async function run(first: PromiseWithResolvers<void>): Promise<void> {
    for (let attempt = 1; !closing.signal.aborted; attempt += 1) {
      const error = await connectUntilLost(first.resolve).catch((why: Error) => why);
      if (closing.signal.aborted) break;
      if (attempt === 1 && error instanceof UnsupportedRedis) {
        first.reject(error);
        break;
      }
      enter('unavailable', error);
      first.resolve();
      await sleep(reconnectMs, undefined, { signal: closing.signal }).catch(() => {});
    }
    first.resolve();
    enter('closed');
  }

  function nodeIn(...states: PrimaryState[]): RedisNode {
    if (states.includes(state)) return node;
    throw new CacheUnavailable(`Redis is ${state}${reason ? ` (${reason.message})` : ''}`);
  }

  return {
    get state() {
      return state;
    },
    get reason() {
      return reason;
    },
    /** Connects as CacheConnection.start() does, and throws its errors. */
    start(): Promise<void> {
      const first = Promise.withResolvers<void>();
      running = run(first);
      return first.promise;
    },
    /** Returns the node for reads. Throws CacheUnavailable unless the primary is usable. */
    forReading: () => nodeIn('usable'),
    /** Returns the node for clears. Throws CacheUnavailable unless the primary is recovering or usable. */
    forClearing: () => nodeIn('usable', 'recovering'),
    disconnect,
    async close(): Promise<void> {
      closing.abort();
      redis.stream?.destroy();
      await running;
      enter('closed');
    },
  };
}

/** Limit for connecting and for `work`, together. */
const timeoutMs = 400;

/** Runs `work` over a new connection, then closes it. Throws an Error with the server's address and the cause. */
export async function withTemporaryClient<T>(
  server: HostPort & RedisAccess,
  work: (client: Redis) => Promise<T>,
): Promise<T> {
  const client = new Redis({ ...clientSettings, ...server });
  let socketError: Error | undefined;
  client.on('error', (error: Error) => (socketError = error));
  try {
    return await withDeadline(
      client.connect().then(() => work(client)),
      timeoutMs,
    );
  } catch (error) {
    const { message } = socketError ?? (error as Error);
    throw new Error(`${server.host}:${server.port}: ${message}`, { cause: error });
  } finally {
    client.stream?.destroy();
  }
}
