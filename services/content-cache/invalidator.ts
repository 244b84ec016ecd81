import { observe } from '@content-platform/chassis';
import { cacheInvalidation, models, type InvalidationSource, type Model } from '@content-platform/contract';
import type { CacheClearer } from './cache/index.ts';
import type { InvalidationLog } from './invalidation-log.ts';
import type { CacheMetrics } from './metrics.ts';

/** The target of a clear: one record, or with id null every record of the model. */
export interface Target {
  model: Model;
  id: number | null;
}

/** Returns `<model>:<id>` or `<model>:*`. */
export const targetName = ({ model, id }: Target): string => `${model}:${id ?? '*'}`;

/** The origin of a clear. */
export interface Requester {
  source: InvalidationSource;
  /** a client id, `user:<id>`, or `<topic>/<partition>/<offset>` */
  requestedBy: string;
  /** When the change was committed or its clear requested, in ms since 1970: the start of the measured delay. */
  since?: number;
}

export function clearTarget(clearer: CacheClearer, { model, id }: Target): Promise<number> {
  return id === null ? clearer.clearPattern(model) : clearer.clearRecord(model, id);
}

export type Invalidator = ReturnType<typeof createInvalidator>;

/** Clears targets, and counts and logs each clear. Rejects with a CacheError if a clear may have failed. */
export function createInvalidator(log: Pick<InvalidationLog, 'add'>, metrics: CacheMetrics) {
  function note(target: Target, keysDeleted: number, { source, requestedBy, since }: Requester): void {
    metrics.keysDeleted.inc({ source }, keysDeleted);
    if (since !== undefined) observe(metrics.delay, { source }, secondsSince(since));
    log.add(target, keysDeleted, { requestedBy, source });
  }

  async function clear(clearer: CacheClearer, target: Target, requester: Requester): Promise<number> {
    const keysDeleted = await clearTarget(clearer, target);
    note(target, keysDeleted, requester);
    return keysDeleted;
  }

  return {
    clear,
    /** Clears different records of a model together. Returns the number of deleted keys. */
    async clearRecords(clearer: CacheClearer, model: Model, ids: readonly number[], requester: Requester) {
      const counts = await clearer.clearRecords(model, ids);
      ids.forEach((id, index) => note({ model, id }, counts[index]!, requester));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async clearAll(clearer: CacheClearer, requester: Requester): Promise<void> {
      await Promise.all(models.map((model) => clear(clearer, { model, id: null }, requester)));
    },
  };
}

/** Returns the seconds since `ms`: at least 0, because clocks differ, and at most the retention time of events. */
export function secondsSince(ms: number): number {
  return Math.min(Math.max(0, Date.now() - ms), cacheInvalidation.retentionMs) / 1000;
}
