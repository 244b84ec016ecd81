import { setTimeout as sleep } from 'node:timers/promises';
import { repeat, statements, type Database, type Logger } from '@content-platform/chassis';
import { type Target, targetName } from '../invalidator.ts';
import type { CacheMetrics } from '../metrics.ts';
import type { PendingClears } from '../pending-clears.ts';
import type { Change } from './change-log.ts';

/** A minute for the announcement (a content server's queue, a restart of the gateway), and 5 s until Kafka is measured. */
const defaultMissedAfterMs = 65_000;
/** Changes that wait for an announcement; further changes, for example of a large UPDATE, are not counted. */
const maxWaiting = 10_000;
/** Time in which every process writes its clears to the log, which happens once a second. */
const writeMs = 2_000;

// An announcement before `since` would have left no stale entry. The tolerance is one second, because clocks differ.
const findAnnounced = `SELECT DISTINCT wanted.model, wanted.id::float8 AS id
  FROM unnest($1::text[], $2::bigint[], $3::timestamptz[]) AS wanted (model, id, since)
  JOIN content.invalidation AS clear ON clear.target IN (wanted.model || ':' || wanted.id, wanted.model || ':*')
    AND clear.source <> 'watch' AND clear.at > wanted.since - interval '1 second'`;

interface MissedChangesOptions {
  query: Database['query'];
  pending: Pick<PendingClears, 'covered'>;
  /** Whether every event that was on the broker a few seconds ago is processed. */
  isQueueEmpty: () => Promise<boolean>;
  metrics: Pick<CacheMetrics, 'missed'>;
  logger: Logger;
  missedAfterMs?: number | undefined;
}

export type MissedChanges = ReturnType<typeof watchMissedChanges>;

/**
 * Counts changes that the follower has cleared, unless an announcement comes within a minute. While events wait in Kafka,
 * changes wait too.
 */
export function watchMissedChanges(options: MissedChangesOptions) {
  const { query, pending, isQueueEmpty, metrics, logger, missedAfterMs = defaultMissedAfterMs } = options;
  const { rows } = statements(query);
  let waiting: { change: Change; since: Date; dueAt: number }[] = [];

  async function decide(signal: AbortSignal): Promise<void> {
    const due = waiting.filter(({ dueAt }) => dueAt <= performance.now());
    if (due.length === 0 || !(await isQueueEmpty())) return;
    await sleep(writeMs, undefined, { signal });
    const changes = due.map(({ change }) => change);
    const announced = await rows<Target>('find_announced_changes', findAnnounced, [
      changes.map(({ model }) => model),
      changes.map(({ id }) => id),
      due.map(({ since }) => since),
    ]);
    const known = new Set([...announced.map(targetName), ...(await pending.covered(changes))]);
    // The due changes are the first: `add` appends, and each change waits for the same time.
    waiting = waiting.slice(due.length);
    for (const change of changes) {
      if (known.has(targetName(change))) continue;
      metrics.missed.inc({ model: change.model });
      logger.warn({ target: targetName(change), changed_at: change.changedAt }, 'a change was not announced');
    }
  }

  return {
    /** Adds a change whose stale entry was cleared now. `since`: a time before the entry was found stale. */
    add(change: Change, since: Date): void {
      if (waiting.length < maxWaiting)
        waiting.push({ change, since, dueAt: performance.now() + missedAfterMs });
    },
    stop: repeat(decide, { everyMs: 1_000, logger, failure: 'missed changes were not counted; retrying' }),
  };
}
