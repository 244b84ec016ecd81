import type { Database, Logger } from '@content-platform/chassis';
import type { Source } from './metrics.ts';
import { targetName, type Target } from './target.ts';

/** One clear that was carried out. */
export interface Invalidation {
  target: Target;
  /** A client, `user:<id>`, or `<topic>/<partition>/<offset>`. */
  requestedBy: string;
  source: Source;
  keysDeleted: number;
}

export interface InvalidationLog {
  /** Writes the log line at once, the row within about a second. Never throws, never waits. */
  add(invalidation: Invalidation): void;
  /** Writes what is left. */
  close(): Promise<void>;
}

const maxQueue = 10_000;
const maxBatch = 1_000;
const flushEveryMs = 1_000;
const cleanEveryMs = 3_600_000;
const keepDays = 30;

const insert = `INSERT INTO content.invalidation (at, source, requested_by, target, keys_deleted)
  SELECT * FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::bigint[])`;
const clean = 'DELETE FROM content.invalidation WHERE at < now() - make_interval(days => $1)';

/**
 * Records every clear. The rows are written in batches, off the way of requests and events. A crash loses the last
 * batch of rows, and that is fine: nothing is decided by them, and the log line was there before the row.
 */
export function createInvalidationLog(query: Database['query'], logger: Logger): InvalidationLog {
  // Looking for secrets costs more than the rest of a line, and in these four fields there are none.
  const lines = logger.child({}, { redact: [] });
  let queue: (Invalidation & { at: Date })[] = [];
  let dropped = 0;
  let cleanedAt = -Infinity;
  let flushing: Promise<void> | undefined;

  async function write(): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.slice(0, maxBatch);
      await query('insert_invalidations', insert, [
        batch.map(({ at }) => at),
        batch.map(({ source }) => source),
        batch.map(({ requestedBy }) => requestedBy),
        batch.map(({ target }) => targetName(target)),
        batch.map(({ keysDeleted }) => keysDeleted),
      ]);
      // Taken out only now: while PostgreSQL is away they wait.
      queue = queue.slice(batch.length);
    }
    if (performance.now() - cleanedAt < cleanEveryMs) return;
    await query('clean_invalidations', clean, [keepDays]);
    cleanedAt = performance.now();
  }

  function flush(): Promise<void> {
    flushing ??= write()
      .catch((error: unknown) => logger.warn({ error, waiting: queue.length }, 'invalidation rows wait'))
      .finally(() => (flushing = undefined));
    return flushing;
  }

  const timer = setInterval(() => {
    if (dropped > 0) logger.warn({ dropped }, 'invalidation rows were dropped; their log lines are there');
    dropped = 0;
    void flush();
  }, flushEveryMs);
  timer.unref();

  return {
    add(invalidation) {
      const { target, requestedBy, source, keysDeleted } = invalidation;
      lines.info(
        { target: targetName(target), requested_by: requestedBy, source, keys_deleted: keysDeleted },
        'cleared',
      );
      if (queue.length >= maxQueue) return void (dropped += 1);
      queue.push({ ...invalidation, at: new Date() });
      // Not for each row of a queue that stays full: while PostgreSQL is away the timer alone tries again.
      if (queue.length % maxBatch === 0) void flush();
    },
    async close() {
      clearInterval(timer);
      await flushing;
      await flush();
    },
  };
}
