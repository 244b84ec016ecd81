import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { Endpoint, RateLimit } from '@content-platform/contract';
import {
  actorOf,
  createBreaker,
  HttpError,
  outsideContext,
  type Breaker,
  type Logger,
  type RedisClient,
} from '@content-platform/chassis';
import type { GatewayMetrics } from '../metrics.ts';
import { onFinished, type GatewayResponse, type RequestContext } from '../request-context.ts';
import { rateLimitAddress } from './request-head.ts';

/** Each function throws 429 with Retry-After when the limit is exceeded. */
export interface RateLimits {
  /** Counts the request in its endpoint's limit, and as in flight until its reply was sent. */
  count(response: GatewayResponse): Promise<void> | void;
  countBadToken(context: RequestContext): Promise<void>;
}

/** Limit of invalid tokens per IP address. It is high, because a whole office may share one IP address. */
const badTokens: RateLimit = { requests: 300, seconds: 60 };

/** Requests in flight of one caller: about a fifth of maxRequests in app.ts, so that no caller fills a service's queue. */
export const maxInFlight = 100;

/** Counts one more request of `subject`; returns the ms until the next is allowed if this exceeds the limit. */
type Limiter = (subject: string) => Promise<number | undefined> | number | undefined;

/** Limits on guessing and on invalid tokens ask Redis each time. All others add their counts once in this interval. */
const syncIntervalMs = 200;

/** The requests of one subject in its current window. */
interface Count {
  /** Requests that Redis does not know yet. */
  pending: number;
  /** Requests that this gateway is adding to Redis now. */
  sending: number;
  /** Redis's last reply: the requests at all gateways. */
  known: number;
  /** performance.now() at the end of the window. */
  endsAt: number;
}

/**
 * Adds to a subject's count. Resolves with the count and whether it exceeds the limit, or throws Redis's error.
 * rate-limiter-flexible's insuranceLimiter would hide Redis's errors from the breaker.
 */
async function add(limiter: RateLimiterRedis | RateLimiterMemory, subject: string, points = 1) {
  try {
    return { isExceeded: false, result: await limiter.consume(subject, points) };
  } catch (rejection) {
    if (rejection instanceof RateLimiterRes) return { isExceeded: true, result: rejection };
    throw rejection;
  }
}

/**
 * Allows exactly `requests` in `seconds`, counted in Redis under `rate:<name>:<subject>` for all gateways together, or in
 * this process while Redis is unavailable.
 */
export function createExactLimiter(
  redis: RedisClient,
  breaker: Breaker,
  name: string,
  { requests, seconds }: RateLimit,
): (subject: string) => Promise<number | undefined> {
  const options = { points: requests, duration: seconds, keyPrefix: `rate:${name}` };
  const memory = new RateLimiterMemory(options);
  // A subject over its limit is blocked in memory until the window ends, without a command to Redis.
  const blocking = { ...options, storeClient: redis, inMemoryBlockOnConsumed: requests };
  /** The library's types omit this method. */
  type Blocks = { getInMemoryBlockMsBeforeExpire(key: string): number };
  const shared = new RateLimiterRedis(blocking) as RateLimiterRedis & Blocks;

  return async (subject) => {
    // Before breaker.allows(): while Redis fails, that allows one call a second, which this return would waste.
    const blockedMs = shared.getInMemoryBlockMsBeforeExpire(shared.getKey(subject));
    if (blockedMs > 0) return blockedMs;
    if (breaker.allows()) {
      try {
        const { isExceeded, result } = await add(shared, subject);
        breaker.report(true);
        return isExceeded ? result.msBeforeNext : undefined;
      } catch (error) {
        breaker.report(false, error);
      }
    }
    const { isExceeded, result } = await add(memory, subject);
    return isExceeded ? result.msBeforeNext : undefined;
  };
}

/**
 * Creates limiters that count in this process, and add their counts to Redis at a subject's first request and then every
 * 200 ms. Each gateway may exceed a limit by its requests of about 400 ms: 200 ms until another gateway adds its count,
 * and 200 ms until this gateway reads it. While Redis is unavailable, each gateway counts its own requests.
 */
function createSyncedLimiters(redis: RedisClient, breaker: Breaker) {
  /** Adds a count's pending requests to Redis. */
  type Sync = () => Promise<void>;
  let due = new Set<Sync>();
  let timer: NodeJS.Timeout | undefined;

  function syncAll(): void {
    timer = undefined;
    const all = due;
    due = new Set();
    for (const sync of all) void sync();
  }

  function syncLater(sync: Sync): void {
    due.add(sync);
    // The counts of many requests must not be in the trace of the one that starts the timer.
    timer ??= outsideContext(() => setTimeout(syncAll, syncIntervalMs)).unref();
  }

  return (name: string, { requests, seconds }: RateLimit): Limiter => {
    const options = { points: requests, duration: seconds, keyPrefix: `rate:${name}` };
    const shared = new RateLimiterRedis({ ...options, storeClient: redis });
    /** The oldest window first. */
    const counts = new Map<string, Count>();

    function beginWindow(subject: string, now: number) {
      for (const [old, { endsAt }] of counts) {
        if (endsAt > now) break;
        counts.delete(old);
      }
      const count = { pending: 0, sending: 0, known: 0, endsAt: now + seconds * 1_000 };
      async function sync(): Promise<void> {
        if (performance.now() >= count.endsAt) return;
        if (count.sending > 0) return syncLater(sync);
        const added = count.pending;
        if (added === 0) {
          // Deleted to save memory: Redis has the count. A subject over its limit stays, and is refused without Redis.
          if (count.known < requests && counts.get(subject) === count) counts.delete(subject);
          return;
        }
        // Once more in 200 ms: for requests that arrive until then, for a retry, or to delete the count.
        syncLater(sync);
        if (!breaker.allows()) return;
        [count.pending, count.sending] = [0, added];
        try {
          const { consumedPoints, msBeforeNext } = (await add(shared, subject, added)).result;
          breaker.report(true);
          count.known = consumedPoints;
          count.endsAt = performance.now() + msBeforeNext;
        } catch (error) {
          breaker.report(false, error);
          count.pending += added;
        }
        count.sending = 0;
      }
      counts.delete(subject);
      counts.set(subject, count);
      // Another gateway may have counted already. Requests of this turn of the event loop are added together.
      setImmediate(sync);
      return count;
    }

    return (subject) => {
      const now = performance.now();
      let count = counts.get(subject);
      if (!count || count.endsAt <= now) count = beginWindow(subject, now);
      if (count.known + count.sending + count.pending >= requests) return count.endsAt - now;
      count.pending += 1;
      return undefined;
    };
  };
}

/** Counts requests in flight per caller, in this process; the returned function returns false at `maxInFlight`. */
function createInFlight() {
  const counts = new Map<string, number>();

  function leave(caller: string): void {
    const left = counts.get(caller)! - 1;
    if (left > 0) counts.set(caller, left);
    else counts.delete(caller);
  }

  return (caller: string, response: GatewayResponse): boolean => {
    if (response.destroyed) return true;
    const count = counts.get(caller) ?? 0;
    if (count >= maxInFlight) return false;
    counts.set(caller, count + 1);
    onFinished(response, () => leave(caller));
    return true;
  };
}

/**
 * Creates the limits of `endpoints` (`rateLimit` in the contract) per user, client or, without a token, IP address.
 * `scale` multiplies all except limits on guessing secrets and `maxInFlight`; 0 disables all except those on guessing.
 */
export function createRateLimits(
  redis: RedisClient,
  endpoints: readonly Endpoint[],
  scale: number,
  { rateLimited }: GatewayMetrics,
  logger: Logger,
): RateLimits {
  const breaker = createBreaker(logger, 'rate limits are counted in this process: Redis does not count them');
  const createSynced = createSyncedLimiters(redis, breaker);
  const scaled = (limit: RateLimit): RateLimit => ({ ...limit, requests: Math.ceil(limit.requests * scale) });
  const limiter = (name: string, limit: RateLimit): Limiter | undefined => {
    if (limit.guessing) return createExactLimiter(redis, breaker, name, limit);
    return scale > 0 ? createSynced(name, scaled(limit)) : undefined;
  };
  const limiters = new Map(endpoints.map(({ name, rateLimit }) => [name, limiter(name, rateLimit)]));
  const badTokenLimiter =
    scale > 0 ? createExactLimiter(redis, breaker, 'bad-token', scaled(badTokens)) : undefined;
  const enterInFlight = scale > 0 ? createInFlight() : () => true;

  function refuse(endpoint: Endpoint, reason: string, seconds: number): never {
    rateLimited.inc({ route: endpoint.path });
    const message = `${reason}. Wait for the number of seconds in Retry-After.`;
    throw new HttpError('rate_limited', message, { headers: { 'Retry-After': String(seconds) } });
  }

  function refuseIf(waitMs: number | undefined, endpoint: Endpoint): void {
    if (waitMs !== undefined) refuse(endpoint, 'Too many requests', Math.max(1, Math.ceil(waitMs / 1000)));
  }

  return {
    count(response) {
      const { locals: context } = response;
      const endpoint = context.endpoint!;
      const subject = context.caller ? actorOf(context.caller) : rateLimitAddress(context.address);
      if (!enterInFlight(subject, response)) refuse(endpoint, 'Too many requests at once', 1);
      const waitMs = limiters.get(endpoint.name)?.(subject);
      if (waitMs instanceof Promise) return waitMs.then((ms) => refuseIf(ms, endpoint));
      refuseIf(waitMs, endpoint);
    },
    async countBadToken({ address, endpoint }) {
      refuseIf(await badTokenLimiter?.(rateLimitAddress(address)), endpoint!);
    },
  };
}
