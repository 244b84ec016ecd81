import { observe } from '@content-platform/chassis';
import { cacheInvalidation, models } from '@content-platform/contract';
import type { Clearing } from './cache/index.ts';
import type { InvalidationLog } from './invalidation-log.ts';
import type { CacheMetrics, Source } from './metrics.ts';
import type { Target } from './target.ts';

/** Who wants something cleared, and by which way they asked. */
export interface Requester {
  source: Source;
  requestedBy: string;
  /** When the change was committed, or asked to be cleared: for the delay. Ms since 1970. */
  since?: number;
}

export type Invalidator = ReturnType<typeof createInvalidator>;

/** Clears, counts and records. Throws what the cache throws: a CacheError when the clear is not certain. */
export function createInvalidator(log: InvalidationLog, metrics: CacheMetrics) {
  async function clear(clearing: Clearing, target: Target, requester: Requester): Promise<number> {
    const { source, requestedBy, since } = requester;
    const { model, id } = target;
    const keysDeleted = await (id === null ? clearing.clearPattern(model) : clearing.clearModel(model, id));
    metrics.keysDeleted.inc({ source }, keysDeleted);
    if (since !== undefined) observe(metrics.delay, { source }, secondsSince(since));
    log.add({ target, requestedBy, source, keysDeleted });
    return keysDeleted;
  }

  return {
    clear,
    /** Every record of every model. */
    async clearAll(clearing: Clearing, requester: Requester): Promise<void> {
      await Promise.all(models.map((model) => clear(clearing, { model, id: null }, requester)));
    },
  };
}

/** Clocks differ: what is said to come from the future has just happened, and nothing waits longer than events are kept. */
export function secondsSince(ms: number): number {
  return Math.min(Math.max(0, Date.now() - ms), cacheInvalidation.retentionMs) / 1000;
}
