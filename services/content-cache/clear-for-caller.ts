import { HttpError, type Caller, type Logger } from '@content-platform/chassis';
import { CacheError, type Clearing } from './cache/index.ts';
import type { Invalidator } from './invalidator.ts';
import type { PendingClears } from './pending-clears.ts';
import type { Target } from './target.ts';

/** Who called, for the invalidation log. */
export function callerName(caller: Caller): string {
  return caller.kind === 'machine' ? caller.clientId : `user:${caller.id}`;
}

/** 503 for a clear that is not certain: it must be sent again. */
export function cacheUnavailable(message: string, cause: unknown): HttpError<'cache_unavailable'> {
  return new HttpError(503, 'cache_unavailable', message, undefined, {
    headers: { 'Retry-After': '1' },
    cause,
  });
}

export interface ClearDeps {
  clearing: Clearing;
  invalidator: Invalidator;
  pending: PendingClears;
  logger: Logger;
}

export type ClearForCaller = (target: Target, caller: Caller) => Promise<number>;

/** Clears for a call: returns keys_deleted. A clear that is refused is remembered and answered with 503. */
export function createClearForCaller({ clearing, invalidator, pending, logger }: ClearDeps): ClearForCaller {
  return async (target, caller) => {
    const requester = { source: 'http', requestedBy: callerName(caller), since: Date.now() } as const;
    try {
      return await invalidator.clear(clearing, target, requester);
    } catch (error) {
      if (!(error instanceof CacheError)) throw error;
      try {
        await pending.add(target, requester);
      } catch (failure) {
        // Not acknowledged either way: the sender's next try is what counts.
        logger.error({ error: failure }, 'a refused clear could not be remembered');
        throw cacheUnavailable(
          'The cache cannot be cleared now, and this could not be noted: send it again.',
          error,
        );
      }
      throw cacheUnavailable(
        'The cache cannot be cleared now. It will be as soon as possible; send it again.',
        error,
      );
    }
  };
}
