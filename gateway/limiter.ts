import type { Breaker, RedisClient } from '@content-platform/chassis';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';

/** Counts one more of `subject`; resolves with the ms until it may come again when that is one too many. */
export type Limiter = (subject: string) => Promise<number | undefined>;

/**
 * At most `requests` in `seconds`, counted in Redis under `rate:<name>:<subject>` for all gateways together, or in this
 * process's memory while Redis does not answer.
 */
export function createLimiter(
  redis: RedisClient,
  breaker: Breaker,
  name: string,
  { requests, seconds }: { requests: number; seconds: number },
): Limiter {
  const options = { points: requests, duration: seconds, keyPrefix: `rate:${name}` };
  const memory = new RateLimiterMemory(options);
  // Who is over the limit is remembered here until the window ends: a flood is not a flood of commands.
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
        const wait = await consume(shared, subject);
        breaker.report(true);
        return wait;
      } catch (error) {
        breaker.report(false, error);
      }
    }
    return consume(memory, subject);
  };
}
