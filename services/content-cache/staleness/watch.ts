import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Logger } from '@content-platform/chassis';
import { CacheError, type ContentCache } from '../cache/index.ts';
import type { Invalidator } from '../invalidator.ts';
import type { CacheMetrics } from '../metrics.ts';
import type { PendingClears } from '../pending-clears.ts';
import { targetName } from '../target.ts';
import { createChangedRecords, type ChangedRecord } from './changed-records.ts';

export interface StalenessWatchOptions {
  database: Pick<Database, 'transaction'>;
  cache: Pick<ContentCache, 'state' | 'cachedVersions' | 'clearModel' | 'clearPattern'>;
  invalidator: Invalidator;
  pending: Pick<PendingClears, 'isFor'>;
  /** Whether no announcement waits to be processed. */
  isQueueEmpty: () => Promise<boolean>;
  metrics: Pick<CacheMetrics, 'missed'>;
  logger: Logger;
  /** How long a record may be cached, in seconds. */
  ttlSeconds: number;
  timing?: StalenessTiming;
}

export interface StalenessTiming {
  /** Seconds from one look to the next. */
  every: number;
  /** Seconds that an announcement may take. */
  settle: number;
}

/** A transaction that took as long as this before its commit is still seen. Seconds. */
const overlap = 300;

// Until the end of the look's transaction: the number says nothing.
const lock = 'SELECT pg_try_advisory_xact_lock(2026112101) AS is_ours';

/**
 * Looks for records that were changed and are still in the cache as they were before: their change was never announced.
 * They are cleared and counted; what is only late, as its announcement waits in the queue, is cleared and not counted.
 * One process looks at a time.
 */
export function createStalenessWatch(options: StalenessWatchOptions) {
  const { database, cache, invalidator, pending, isQueueEmpty, metrics, logger, ttlSeconds } = options;
  const { every, settle } = options.timing ?? { every: 30, settle: 5 };
  let lookedAt: number | undefined;

  async function isStale({ model, id, version }: ChangedRecord): Promise<boolean> {
    return (await cache.cachedVersions(model, id)).some((cached) => cached !== version);
  }

  async function staleOf(records: ChangedRecord[]): Promise<ChangedRecord[]> {
    const stale = await Promise.all(records.map(isStale));
    return records.filter((_, index) => stale[index]);
  }

  /** What was changed once more meanwhile may be cached as it is now: the next look sees it. */
  async function clear(record: ChangedRecord, isUnchanged: boolean, isQuiet: boolean): Promise<void> {
    // Asked for again: its announcement may have been processed since the first time.
    if (!isUnchanged || !(await isStale(record))) return;
    const { model, id, changedAt } = record;
    const isMissed = isQuiet && !(await pending.isFor(record));
    const requester = { source: 'watch', requestedBy: 'content-cache', since: changedAt.getTime() } as const;
    await invalidator.clear(cache, { model, id }, requester);
    if (!isMissed) return;
    metrics.missed.inc({ model });
    logger.warn({ target: targetName(record), changed_at: changedAt }, 'a change was not announced');
  }

  /** @param since seconds: how far back it looks */
  async function look(query: Database['query'], since: number): Promise<void> {
    const records = createChangedRecords(query);
    for await (const page of records.between(since, settle)) {
      const stale = await staleOf(page);
      if (stale.length === 0) continue;
      const isQuiet = await isQueueEmpty();
      for (const record of stale) await clear(record, await records.isUnchanged(record), isQuiet);
    }
    await records.forget();
  }

  async function lookIfFirst(): Promise<void> {
    const now = performance.now();
    // The first time, whatever may be cached: nobody knows when another process last looked.
    const since = lookedAt === undefined ? ttlSeconds * 1.1 : (now - lookedAt) / 1_000;
    await database.transaction(async (query) => {
      const { rows } = await query<{ is_ours: boolean }>('lock_staleness_watch', lock);
      if (!rows[0]!.is_ours) return;
      await look(query, since + overlap);
      lookedAt = now;
    });
  }

  return {
    /** Looks now and every 30 s until `signal` says stop. Never throws. */
    async run(signal: AbortSignal): Promise<void> {
      let failing = false;
      while (!signal.aborted) {
        try {
          if (cache.state === 'usable') await lookIfFirst();
          failing = false;
        } catch (error) {
          // The cache's state has lines of its own in the log.
          if (!failing && !(error instanceof CacheError))
            logger.warn({ error }, 'the cache was not compared with the records');
          failing = true;
        }
        await sleep(every * 1_000, undefined, { signal }).catch(() => undefined);
      }
    },
  };
}
