import { repeat, settleAll, type Database, type Logger } from '@content-platform/chassis';
import type { CacheClearer, ContentCache } from '../cache/index.ts';
import type { Invalidator } from '../invalidator.ts';
import type { MissedChanges } from './missed-changes.ts';
import { createChangeLog, isBefore, type Change, type ChangeLog, type Snapshot } from './change-log.ts';

export interface ChangeFollowerOptions {
  database: Pick<Database, 'transaction'>;
  cache: Pick<ContentCache, 'state' | 'inspect' | keyof CacheClearer>;
  invalidator: Invalidator;
  missed: Pick<MissedChanges, 'add'>;
  logger: Logger;
  timing?: ChangeTiming | undefined;
}

export interface ChangeTiming {
  /** The time between two checks, in ms. */
  intervalMs: number;
  /** The time that an announcement may take after the commit before the record is compared, in ms. */
  settleMs: number;
  /** The time that an announcement may take after the clear before the change counts as missed, in ms. Default: 65 s. */
  missedAfterMs?: number;
}

/** The changes between two snapshots. */
interface Batch {
  from: Snapshot;
  to: Snapshot;
  /** performance.now() */
  seenAt: number;
  /**
   * As read at `seenAt`; undefined if there are too many for memory. If they were read only when they are compared, a
   * record that changes all the time would always have a newer change, and would stay stale.
   */
  changes: Change[] | undefined;
}
const maxKeptChanges = 1_000;

/** How often the position is stored while no record changes, in ms. */
const storeEveryMs = 60_000;

// The transaction holds the lock until it ends. The number is arbitrary.
const lock = 'SELECT pg_try_advisory_xact_lock(2026112101) AS is_ours';

const requester = { source: 'watch', requestedBy: 'content-cache' } as const;

/**
 * Reads the new changes every 250 ms, compares them with the cache a second later, and clears stale entries. Only one
 * process compares at a time. Its position is in PostgreSQL, so no change is skipped when processes stop. The returned
 * function stops this, and resolves when the running check has ended.
 */
export function clearUnannouncedChanges(options: ChangeFollowerOptions): () => Promise<void> {
  const { database, cache, invalidator, missed, logger } = options;
  const { intervalMs, settleMs } = options.timing ?? { intervalMs: 250, settleMs: 1_000 };
  /** The changes that were not yet compared, the oldest first. */
  let batches: Batch[] = [];
  let epochOfBatches = '';
  let storedAt = -Infinity;

  const isDeletedLater = ({ model, id }: Change) =>
    batches.some(({ changes }) =>
      changes?.some((other) => other.isDeleted && other.id === id && other.model === model),
    );

  async function inspect(change: Change) {
    const { isLeased, versions } = await cache.inspect(change.model, change.id);
    const isStale = versions.some((cached) =>
      cached === null ? !change.isDeleted && !isDeletedLater(change) : cached < change.version,
    );
    return { change, isLeased, isStale };
  }

  async function clear(change: Change, foundAt: Date): Promise<void> {
    await invalidator.clear(cache, change, { ...requester, since: change.changedAt.getTime() });
    missed.add(change, foundAt);
  }

  /** Clears the stale records of a page, all at the same time, so that their clears share a sweep. */
  async function comparePage(changes: Change[]): Promise<void> {
    const foundAt = new Date();
    const states = await Promise.all(changes.map(inspect));
    await settleAll(states.filter(({ isStale }) => isStale).map(({ change }) => clear(change, foundAt)));
    // A reader that has read the record before the change may still fill the cache. The clear makes Redis refuse it.
    const leased = states.filter(({ isLeased }) => isLeased);
    await settleAll(leased.map(({ change }) => cache.clearRecord(change.model, change.id)));
  }

  async function check(query: Database['query']): Promise<void> {
    const log = createChangeLog(query);
    const { epoch, hasSameOrigin, isCleared, compared, now } = await log.position();
    if (!hasSameOrigin) return log.startEpoch(epoch);
    if (epoch !== epochOfBatches) batches = [];
    epochOfBatches = epoch;
    if (!isCleared) {
      // PostgreSQL ends an idle transaction after 30 s. The scans of a Redis with 15 million keys take longer.
      await query('allow_long_clear', "SET LOCAL idle_in_transaction_session_timeout = '10min'");
      await invalidator.clearAll(cache, { ...requester, since: Date.now() });
      logger.info('all cached records were cleared: the log of changes begins here');
      return log.setCompared(now, epoch);
    }
    // Another process may have compared some.
    batches = batches.filter(({ to }) => !isBefore(to, compared));
    batches.push(await readBatch(log, batches.at(-1)?.to ?? compared));
    while (batches[0] && performance.now() - batches[0].seenAt >= settleMs) await compareOldest(log, epoch);
  }

  async function readBatch(log: ChangeLog, from: Snapshot): Promise<Batch> {
    const { now, changes, last } = await log.readPage({ from }, maxKeptChanges);
    return { from, to: now, seenAt: performance.now(), changes: last ? undefined : changes };
  }

  async function compareOldest(log: ChangeLog, epoch: string): Promise<void> {
    const { from, to, changes } = batches[0]!;
    if (!changes) for await (const page of log.between(from, to)) await comparePage(page);
    else if (changes.length > 0) await comparePage(changes);
    batches.shift();
    const at = performance.now();
    if (changes?.length === 0 && at - storedAt < storeEveryMs) return;
    await log.setCompared(to, epoch);
    storedAt = at;
  }

  const work = async (signal: AbortSignal) => {
    if (cache.state !== 'usable') return;
    try {
      await database.transaction(async (query) => {
        const { rows } = await query<{ is_ours: boolean }>('lock_change_follower', lock);
        // Ends between two pages: a large change takes longer than a process has to stop.
        const queryUntilStopped: typeof query = async (...statement) => {
          signal.throwIfAborted();
          return query(...statement);
        };
        if (rows[0]!.is_ours) await check(queryUntilStopped);
      });
    } catch (error) {
      // After a crash, PostgreSQL assigns the newest transaction ids again: only the stored position is still valid.
      batches = [];
      throw error;
    }
  };
  const failure = 'changed records were not compared with the cache';
  return repeat(work, { everyMs: intervalMs, logger, failure });
}
