import type { ServerResponse } from 'node:http';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { Endpoint, RateLimit } from '@content-platform/contract';
import {
  actorOf,
  createBreaker,
  HttpError,
  type Breaker,
  type Logger,
  type RedisClient,
} from '@content-platform/chassis';
import type { GatewayMetrics } from '../metrics.ts';
import {
  onFinished,
  type GatewayResponse,
  type Middleware,
  type RequestContext,
} from '../request-context.ts';
import { rateLimitAddress } from './head.ts';

/** Each function throws 429 with Retry-After when the limit is exceeded. */
export interface RateLimits {
  /** Counts the request in its endpoint's limit, and as in flight until its reply was sent. */
  count(response: GatewayResponse): Promise<void>;
  countBadToken(context: RequestContext): Promise<void>;
}

/** Limit of invalid tokens per IP address. It is high, because a whole office may share one IP address. */
const badTokens: RateLimit = { requests: 300, seconds: 60 };

/** A fifth of maxRequests in app.ts, so that a single caller cannot fill the queue of a service. */
export const maxInFlight = 100;

/** Counts one more request of `subject`; resolves with the ms until the next is allowed if this exceeds the limit. */
type Limiter = (subject: string) => Promise<number | undefined>;

/**
 * Counts in Redis under `rate:<name>:<subject>` for all gateways together, or in this process while Redis is
 * unavailable. rate-limiter-flexible's insuranceLimiter would hide Redis's errors from the breaker.
 */
export function createLimiter(
  redis: RedisClient,
  breaker: Breaker,
  name: string,
  { requests, seconds }: RateLimit,
): Limiter {
  const options = { points: requests, duration: seconds, keyPrefix: `rate:${name}` };
  const memory = new RateLimiterMemory(options);
  // A subject over its limit is blocked in memory until the window ends, without a command to Redis.
  const shared = new RateLimiterRedis({ ...options, storeClient: redis, inMemoryBlockOnConsumed: requests });

  async function consume(limiter: RateLimiterMemory | RateLimiterRedis, subject: string) {
    try {
      await limiter.consume(subject);
      return undefined;
    } catch (rejection) {
      if (rejection instanceof RateLimiterRes) return rejection.msBeforeNext;
      throw rejection;
    }
  }

  return async (subject) => {
    if (breaker.allows()) {
      try {
        const waitMs = await consume(shared, subject);
        breaker.report(true);
        return waitMs;
      } catch (error) {
        breaker.report(false, error);
      }
    }
    return consume(memory, subject);
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

  return (caller: string, response: ServerResponse): boolean => {
    if (response.destroyed) return true;
    const count = counts.get(caller) ?? 0;
    if (count >= maxInFlight) return false;
    counts.set(caller, count + 1);
    onFinished(response, () => leave(caller));
    return true;
  };
}

/**
 * Creates the limits per user, client or, without a token, IP address. `scale` multiplies them, except limits on
 * guessing secrets; 0 disables them and the limit of requests in flight.
 */
export function createRateLimits(
  redis: RedisClient,
  endpoints: readonly Endpoint[],
  scale: number,
  { rateLimited }: GatewayMetrics,
  logger: Logger,
): RateLimits {
  const breaker = createBreaker(logger, 'rate limits are counted in this process: Redis does not count them');
  const limiter = (name: string, { requests, seconds, guessing }: RateLimit): Limiter | undefined => {
    const scaled = guessing ? requests : Math.ceil(requests * scale);
    return scaled > 0 ? createLimiter(redis, breaker, name, { requests: scaled, seconds }) : undefined;
  };
  const limiters = new Map(endpoints.map(({ name, rateLimit }) => [name, limiter(name, rateLimit)]));
  const badTokenLimiter = limiter('bad-token', badTokens);
  const enterInFlight = scale > 0 ? createInFlight() : () => true;

  function refuse(endpoint: Endpoint, reason: string, seconds: number): never {
    rateLimited.inc({ route: endpoint.path });
    const headers = { 'Retry-After': String(seconds) };
    throw new HttpError('rate_limited', `${reason}. Wait for the number of seconds in Retry-After.`, {
      headers,
    });
  }

  async function check(limit: Limiter | undefined, subject: string, endpoint: Endpoint): Promise<void> {
    const waitMs = await limit?.(subject);
    if (waitMs !== undefined) refuse(endpoint, 'Too many requests', Math.max(1, Math.ceil(waitMs / 1000)));
  }

  return {
    async count(response) {
      const { locals: context } = response;
      const endpoint = context.endpoint!;
      const subject = context.caller ? actorOf(context.caller) : rateLimitAddress(context.address);
      if (!enterInFlight(subject, response)) refuse(endpoint, 'Too many requests at once', 1);
      await check(limiters.get(endpoint.name), subject, endpoint);
    },
    countBadToken: ({ address, endpoint }) => check(badTokenLimiter, rateLimitAddress(address), endpoint!),
  };
}

export function rateLimit(limits: RateLimits): Middleware {
  return async (_request, response, next) => {
    await limits.count(response);
    next();
  };
}
