import type { Database, Logger } from '@content-platform/chassis';
import type { ContentCache } from '../cache/index.ts';
import { settleAll, type Invalidator } from '../invalidator.ts';
import type { CacheMetrics } from '../metrics.ts';
import type { PendingClears } from '../pending-clears.ts';
import { repeat } from '../repeat.ts';
import { targetName } from '../target.ts';
import { createChangedRecords, type ChangedRecord } from './changed-records.ts';

export interface StalenessWatchOptions {
  database: Pick<Database, 'transaction'>;
  cache: Pick<ContentCache, 'state' | 'cachedVersions' | 'clearModel' | 'clearPattern'>;
  invalidator: Invalidator;
  pending: Pick<PendingClears, 'among'>;
  /** Whether every announcement has been processed. */
  isQueueEmpty: () => Promise<boolean>;
  metrics: Pick<CacheMetrics, 'missed'>;
  logger: Logger;
  /** How long a record may be cached, in seconds. */
  ttlSeconds: number;
  timing?: StalenessTiming | undefined;
}

export interface StalenessTiming {
  /** The time between two checks. */
  intervalSeconds: number;
  /** The time that an announcement may take. */
  settleSeconds: number;
}

/** A change is found even if its transaction committed this long after its timestamp. */
const overlapSeconds = 300;

// The check's transaction holds the lock until it ends. The number is arbitrary.
const lock = 'SELECT pg_try_advisory_xact_lock(2026112101) AS is_ours';

/**
 * Finds stale cache entries: records whose change was never announced. Clears and counts them. Entries whose announcement
 * still waits in the queue are cleared and not counted. Only one process checks at a time.
 */
export function createStalenessWatch(options: StalenessWatchOptions) {
  const { database, cache, invalidator, pending, isQueueEmpty, metrics, logger, ttlSeconds } = options;
  const { intervalSeconds, settleSeconds } = options.timing ?? { intervalSeconds: 30, settleSeconds: 5 };
  let checkedAt: number | undefined;

  async function isStale({ model, id, version }: ChangedRecord): Promise<boolean> {
    return (await cache.cachedVersions(model, id)).some((cached) => cached !== version);
  }

  async function staleOf(records: ChangedRecord[]): Promise<ChangedRecord[]> {
    const stale = await Promise.all(records.map(isStale));
    return records.filter((_, index) => stale[index]);
  }

  async function clear(record: ChangedRecord, isMissed: boolean): Promise<void> {
    const { model, id, changedAt } = record;
    const requester = { source: 'watch', requestedBy: 'content-cache', since: changedAt.getTime() } as const;
    await invalidator.clear(cache, { model, id }, requester);
    if (!isMissed) return;
    metrics.missed.inc({ model });
    logger.warn({ target: targetName(record), changed_at: changedAt }, 'a change was not announced');
  }

  /** Clears all records at once, so that they share a sweep. Rejects with the first refusal when all have settled. */
  async function clearAll(records: ChangedRecord[], isQuiet: boolean): Promise<void> {
    const waiting = isQuiet ? await pending.among(records) : undefined;
    const isMissed = (record: ChangedRecord) => waiting !== undefined && !waiting.has(targetName(record));
    await settleAll(records.map((record) => clear(record, isMissed(record))));
  }

  /** @param since how far back to look, in seconds */
  async function check(query: Database['query'], since: number): Promise<void> {
    const records = createChangedRecords(query);
    for await (const page of records.between(since, settleSeconds)) {
      const stale = await staleOf(page);
      if (stale.length === 0) continue;
      const isQuiet = await isQueueEmpty();
      // A record that changed again may be cached in its newest version: the next check sees it. And the announcement may
      // have been processed since the entry was found stale.
      await clearAll(await staleOf(await records.unchanged(stale)), isQuiet);
    }
    await records.forget();
  }

  async function checkIfFirst(): Promise<void> {
    const now = performance.now();
    // The first check covers everything that may be cached: another process's last check is unknown.
    const since = checkedAt === undefined ? ttlSeconds * 1.1 : (now - checkedAt) / 1_000;
    await database.transaction(async (query) => {
      const { rows } = await query<{ is_ours: boolean }>('lock_staleness_watch', lock);
      if (!rows[0]!.is_ours) return;
      await check(query, since + overlapSeconds);
      checkedAt = now;
    });
  }

  return {
    /** Checks now and every 30 s until `signal` aborts. Never throws. */
    run(signal: AbortSignal): Promise<void> {
      const work = async () => {
        if (cache.state === 'usable') await checkIfFirst();
      };
      const failure = 'the cache was not compared with the records';
      return repeat(work, { intervalMs: intervalSeconds * 1_000, signal, logger, failure });
    },
  };
}
