import { setTimeout as sleep } from 'node:timers/promises';

import type { Redis } from 'ioredis';

import { withDeadline } from './deadline.ts';
import { CacheUnavailable, CacheUnfit, isDemoted, type CacheError } from './errors.ts';
import { createCacheNode, type CacheNode } from './node.ts';
import type { ProtocolScripts } from './scripts.ts';

const CONNECT_TIMEOUT_MS = 1000;
/** The pause between two attempts: a hanging Redis costs a process one timeout a second. */
export const RETRY_MS = 1000;
const PING_MS = 1000;

/** What every client has in common. */
export const clientSettings = {
  lazyConnect: true,
  // Reconnecting is our loop's: nothing may be sent before the checks of a new connection.
  retryStrategy: () => null,
  // A READ sent twice would wait for its own lease.
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  // INFO without a time limit; our own first question does the same.
  enableReadyCheck: false,
  protocol: 2,
  disableClientInfo: true,
} as const;

/**
 * - away: not connected, or not known to be fit; nothing is sent.
 * - recovering: connected and fit; clears are carried out, reads still pass the cache by.
 * - usable: what was refused while Redis was away has been cleared; reads use the cache.
 * - closed: for good.
 */
export type PrimaryState = 'away' | 'recovering' | 'usable' | 'closed';

export interface PrimaryOptions {
  /** The client, with `clientSettings`, not yet connected. */
  redis: Redis;
  scripts: ProtocolScripts;
  /** Runs after each connect, before the cache is used: clears what could not be cleared meanwhile. */
  recover: (node: CacheNode) => Promise<void>;
  /** Hears of each new state, and of each new reason to stay away. */
  onStateChange: (state: PrimaryState, reason?: Error) => void;
  /** It is one of several, each with slots of its own. */
  isCluster?: boolean;
  /** Hears of each error of a command. */
  onError?: ((error: CacheError) => void) | undefined;
  /** Whether the connection is to be given up for this refusal. */
  isOver?: (error: unknown) => boolean;
}

export interface Primary {
  readonly state: PrimaryState;
  readonly reason: Error | undefined;
  /** How many times the connection was given up because Redis did not answer in time. */
  readonly timeouts: number;
  /**
   * Makes the first attempt to connect and goes on trying in the background, once a second, until close().
   * Resolves when that attempt is over; Redis may be away then.
   *
   * @throws CacheUnfit when the first attempt finds a Redis that cannot keep the promise
   */
  start(): Promise<void>;
  /** Speaks the protocol with it. @throws CacheUnavailable in any other state */
  nodeIn(...states: PrimaryState[]): CacheNode;
  close(): Promise<void>;
}

/** The one connection of a process to a primary, given up as soon as it hangs or has become a replica. */
export function createPrimary(options: PrimaryOptions): Primary {
  const { redis, isOver = isDemoted, isCluster = false } = options;
  let state: PrimaryState = 'away';
  let reason: Error | undefined;
  let socketError: Error | undefined;
  let timeouts = 0;
  let running: Promise<void> | undefined;
  const closing = new AbortController();

  redis.on('error', (error: Error) => (socketError = error));
  const node = createCacheNode(redis, options.scripts, {
    giveUp,
    isOver,
    onError: options.onError,
    isCluster,
  });

  /**
   * What is under way fails at once, not each after a timeout of its own. A graceful end would wait for the other side.
   * The next connection looks up the address anew: where a replica has taken over, its name may lead to that one.
   */
  function giveUp(reason: CacheError): void {
    if (redis.stream.destroyed) return;
    if (reason instanceof CacheUnavailable) timeouts += 1;
    redis.stream.destroy(reason);
  }

  function enter(next: PrimaryState, why?: Error): void {
    const news = next !== state || why?.message !== reason?.message;
    state = next;
    reason = why;
    if (news) options.onStateChange(next, why);
  }

  /** One life of the connection, from connecting to its loss. Always ends with a throw that says why. */
  async function live(onUsable: () => void): Promise<never> {
    socketError = undefined;
    const lost = new Promise<never>((_, reject) => {
      redis.once('end', () =>
        reject(new CacheUnavailable(socketError?.message ?? 'the connection was closed')),
      );
    });
    lost.catch(() => {});
    let pings: NodeJS.Timeout | undefined;
    try {
      await withDeadline(redis.connect(), CONNECT_TIMEOUT_MS).catch((error: Error) => {
        throw new CacheUnavailable(socketError?.message ?? error.message);
      });
      await node.incarnation();
      // Of what else is in its cluster nobody would know.
      if (!isCluster && (await node.isInCluster()))
        throw new CacheUnfit('this Redis is part of a cluster: redis-cluster:// is for that');
      pings = setInterval(() => void node.ping().catch(() => {}), PING_MS);
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
      const error = await live(first.resolve).catch((why: Error) => why);
      if (closing.signal.aborted) break;
      if (attempt === 1 && error instanceof CacheUnfit) {
        first.reject(error);
        break;
      }
      enter('away', error);
      first.resolve();
      await sleep(RETRY_MS, undefined, { signal: closing.signal }).catch(() => {});
    }
    first.resolve();
    enter('closed');
  }

  return {
    get state() {
      return state;
    },
    get reason() {
      return reason;
    },
    get timeouts() {
      return timeouts;
    },
    start() {
      const first = Promise.withResolvers<void>();
      running = run(first);
      return first.promise;
    },
    nodeIn(...states) {
      if (states.includes(state)) return node;
      throw new CacheUnavailable(`Redis is ${state}${reason ? ` (${reason.message})` : ''}`);
    },
    async close() {
      closing.abort();
      redis.stream?.destroy();
      await running;
      enter('closed');
    },
  };
}
