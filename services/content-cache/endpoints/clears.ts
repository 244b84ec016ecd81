import { HttpError, type Caller, type Handler, type Logger } from '@content-platform/chassis';
import { models, type Model } from '@content-platform/contract';
import type * as contract from '@content-platform/contract';
import { CacheError, type CacheClearer } from '../cache/index.ts';
import type { InvalidationLog } from '../invalidation-log.ts';
import type { Invalidator } from '../invalidator.ts';
import type { PendingClears } from '../pending-clears.ts';

/** Returns the caller's name in the invalidation log: as `actorOf`, but a machine client's id without `client:`. */
export function callerName(caller: Caller): string {
  return caller.kind === 'machine' ? caller.clientId : `user:${caller.id}`;
}

/** Returns the 503 for a clear that may have failed: the sender must retry it. */
export function cacheUnavailable(message: string, cause: unknown): HttpError<'cache_unavailable'> {
  return new HttpError('cache_unavailable', message, { headers: { 'Retry-After': '1' }, cause });
}

export interface ClearDeps {
  cache: CacheClearer;
  invalidator: Invalidator;
  pending: Pick<PendingClears, 'add'>;
  logger: Logger;
}

/** Clears different records (null: all) of a model and returns keys_deleted. Stores a refused clear, then throws 503. */
async function clear(deps: ClearDeps, model: Model, ids: readonly number[] | null, caller: Caller) {
  const { cache, invalidator, pending, logger } = deps;
  const requester = { source: 'http', requestedBy: callerName(caller), since: Date.now() } as const;
  try {
    if (ids) return await invalidator.clearRecords(cache, model, ids, requester);
    return await invalidator.clear(cache, { model, id: null }, requester);
  } catch (error) {
    if (!(error instanceof CacheError)) throw error;
    // Stored or not, the clear is not acknowledged: the sender's retry counts.
    const advice = await pending.add(model, ids ?? [null], requester).then(
      () => 'The clear is stored and runs later. Send it again until it returns 200.',
      (failure: unknown) => {
        logger.error({ error: failure }, 'refused clear not stored; it is lost unless the sender retries');
        return 'The clear could not be stored. Send it again.';
      },
    );
    throw cacheUnavailable(`The cache cannot be cleared now. ${advice}`, error);
  }
}

export function clearModel(deps: ClearDeps): Handler<typeof contract.clearModel> {
  return async ({ body: { model, id, ids = [id!] }, caller }) => ({
    status: 200,
    body: { success: true, keys_deleted: await clear(deps, model, [...new Set(ids)], caller) },
  });
}

export function clearPattern(deps: ClearDeps): Handler<typeof contract.clearPattern> {
  return async ({ body: { pattern }, caller }) => {
    // The contract allows only a model followed by `:*`.
    const model = models.find((name) => pattern === `${name}:*`)!;
    return { status: 200, body: { success: true, keys_deleted: await clear(deps, model, null, caller) } };
  };
}

export function listInvalidations(log: InvalidationLog): Handler<typeof contract.listInvalidations> {
  return async ({ query: { limit, cursor, ...filter } }) => ({
    status: 200,
    body: await log.list(filter, cursor, limit),
  });
}
