import { HttpError, type Caller, type Logger } from '@content-platform/chassis';
import type { Model } from '@content-platform/contract';
import { CacheError, type CacheClearer } from './cache/index.ts';
import type { Invalidator } from './invalidator.ts';
import type { PendingClears } from './pending-clears.ts';

/** The caller's name in the invalidation log. */
export function callerName(caller: Caller): string {
  return caller.kind === 'machine' ? caller.clientId : `user:${caller.id}`;
}

/** Returns the 503 for a clear that may have failed: the sender must retry it. */
export function cacheUnavailable(message: string, cause: unknown): HttpError<'cache_unavailable'> {
  return new HttpError('cache_unavailable', message, { headers: { 'Retry-After': '1' }, cause });
}

interface ClearDeps {
  clearer: CacheClearer;
  invalidator: Invalidator;
  pending: PendingClears;
  logger: Logger;
}

/** @param ids different ids of records; null: every record of the model */
export type ClearForCaller = (model: Model, ids: readonly number[] | null, caller: Caller) => Promise<number>;

/** Clears for an HTTP call and returns keys_deleted. Stores a refused clear, then throws 503. */
export function createClearForCaller({ clearer, invalidator, pending, logger }: ClearDeps): ClearForCaller {
  return async (model, ids, caller) => {
    const requester = { source: 'http', requestedBy: callerName(caller), since: Date.now() } as const;
    try {
      if (ids) return await invalidator.clearRecords(clearer, model, ids, requester);
      return await invalidator.clear(clearer, { model, id: null }, requester);
    } catch (error) {
      if (!(error instanceof CacheError)) throw error;
      // Stored or not, the clear is not acknowledged: the sender's retry counts.
      const advice = await pending.add(model, ids ?? [null], requester).then(
        () => 'It will be as soon as possible; send it again.',
        (failure: unknown) => {
          logger.error({ error: failure }, 'refused clear not stored; it is lost unless the sender retries');
          return 'This could not be noted: send it again.';
        },
      );
      throw cacheUnavailable(`The cache cannot be cleared now. ${advice}`, error);
    }
  };
}
