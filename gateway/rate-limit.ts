import type { Endpoint, RateLimit } from '@content-platform/contract';
import {
  createBreaker,
  HttpError,
  type Caller,
  type Logger,
  type RedisClient,
} from '@content-platform/chassis';
import { limitedAddress } from './client-address.ts';
import type { Exchange, GatewayResponse, Step } from './exchange.ts';
import { createInFlight } from './in-flight.ts';
import { createLimiter, type Limiter } from './limiter.ts';
import type { GatewayMetrics } from './metrics.ts';

/** Each throws 429 with Retry-After when that was one too many. */
export interface RateLimits {
  count(exchange: Exchange): Promise<void>;
  /** Counts the request as under way until its reply is out. */
  enter(response: GatewayResponse): void;
  countBadToken(exchange: Exchange): Promise<void>;
}

/** Tokens that are not valid, per address: generous, for a whole office may log in anew behind one address. */
const badTokens: RateLimit = { requests: 300, seconds: 60 };

function subjectOf({ caller, address }: { caller?: Caller; address: string }): string {
  if (!caller) return limitedAddress(address);
  return caller.kind === 'user' ? `user:${caller.id}` : `client:${caller.clientId}`;
}

/**
 * The limits of the contract: per user or machine client where there is a token, per address elsewhere. `scale`
 * multiplies them, 0 switches them off; limits on guessing secrets stay as they are. How many requests of one of those
 * may be under way at once is not scaled, but 0 switches that off, too.
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

  const inFlight = scale > 0 ? createInFlight() : undefined;

  function refuse(endpoint: Endpoint, what: string, seconds: number): never {
    rateLimited.inc({ route: endpoint.path });
    const message = `${what}; Retry-After says when to come again.`;
    const headers = { 'Retry-After': String(seconds) };
    throw new HttpError(429, 'rate_limited', message, undefined, { headers });
  }

  async function check(limit: Limiter | undefined, subject: string, endpoint: Endpoint): Promise<void> {
    const wait = await limit?.(subject);
    if (wait !== undefined) refuse(endpoint, 'Too many requests', Math.max(1, Math.ceil(wait / 1000)));
  }

  return {
    count: (exchange) =>
      check(limiters.get(exchange.endpoint!.name), subjectOf(exchange), exchange.endpoint!),
    enter(response) {
      const { endpoint } = response.locals;
      if (inFlight?.(subjectOf(response.locals), response) === false)
        refuse(endpoint!, 'Too many requests at once', 1);
    },
    countBadToken: ({ address, endpoint }) => check(badTokenLimiter, limitedAddress(address), endpoint!),
  };
}

export function rateLimit(limits: RateLimits): Step {
  return async (_request, response, next) => {
    limits.enter(response);
    await limits.count(response.locals);
    next();
  };
}
