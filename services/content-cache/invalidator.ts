import { observe } from '@content-platform/chassis';
import { cacheInvalidation, models } from '@content-platform/contract';
import type { CacheClearer } from './cache/index.ts';
import type { InvalidationLog } from './invalidation-log.ts';
import type { CacheMetrics, Source } from './metrics.ts';
import type { Target } from './target.ts';

/** The origin of a clear. */
export interface Requester {
  source: Source;
  requestedBy: string;
  /** When the change was committed or its clear requested, in ms since 1970: the start of the measured delay. */
  since?: number;
}

/** Waits until all of `work` has settled. Then rejects with the first error, if any. */
export async function settleAll(work: Promise<unknown>[]): Promise<void> {
  const outcomes = await Promise.allSettled(work);
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
}

/** Sends the clear of a target to the cache. */
export function clearTarget(clearer: CacheClearer, { model, id }: Target): Promise<number> {
  return id === null ? clearer.clearPattern(model) : clearer.clearModel(model, id);
}

export type Invalidator = ReturnType<typeof createInvalidator>;

/** Clears targets, and counts and logs each clear. Rejects with a CacheError if a clear may have failed. */
export function createInvalidator(log: InvalidationLog, metrics: CacheMetrics) {
  async function clear(clearer: CacheClearer, target: Target, requester: Requester): Promise<number> {
    const { source, requestedBy, since } = requester;
    const keysDeleted = await clearTarget(clearer, target);
    metrics.keysDeleted.inc({ source }, keysDeleted);
    if (since !== undefined) observe(metrics.delay, { source }, secondsSince(since));
    log.add({ target, requestedBy, source, keysDeleted });
    return keysDeleted;
  }

  return {
    clear,
    /** Clears every record of every model. */
    async clearAll(clearer: CacheClearer, requester: Requester): Promise<void> {
      await Promise.all(models.map((model) => clear(clearer, { model, id: null }, requester)));
    },
  };
}

/** Returns the seconds since `ms`: at least 0, because clocks differ, and at most the retention time of events. */
export function secondsSince(ms: number): number {
  return Math.min(Math.max(0, Date.now() - ms), cacheInvalidation.retentionMs) / 1000;
}
