import { page, runInBatches, type Database, type Logger } from '@content-platform/chassis';
import type { InvalidationSource, listInvalidations, Query } from '@content-platform/contract';
import { type Requester, type Target, targetName } from './invalidator.ts';

type InvalidationFilter = Omit<Query<typeof listInvalidations>, 'limit' | 'cursor'>;

interface Row {
  at: Date;
  source: InvalidationSource;
  requested_by: string;
  target: string;
  keys_deleted: number;
}

export type InvalidationLog = ReturnType<typeof createInvalidationLog>;

const maxQueue = 10_000;
const maxBatch = 1_000;
const flushIntervalMs = 1_000;
/** Number of rows that do not wait for the timer: those of a busy second would occupy PostgreSQL for 10 ms. */
const flushAt = 100;

const insert = `INSERT INTO content.invalidation (at, source, requested_by, target, keys_deleted)
  SELECT * FROM json_to_recordset($1)
    AS cleared (at timestamptz, source text, requested_by text, target text, keys_deleted bigint)`;

// In every collation, the targets of a model sort between its name and its name followed by a letter: an index finds them.
const select = `SELECT id::float8 AS id, at, source, requested_by, target, keys_deleted::float8 AS keys_deleted
  FROM content.invalidation
  WHERE ($1::text[] IS NULL OR target = ANY ($1))
    AND ($2::text IS NULL OR (target > $2 AND target < $2 || 'z' AND starts_with(target, $2 || ':')))
    AND ($3::timestamptz IS NULL OR at >= $3)
    AND ($4::bigint IS NULL OR (at, invalidation.id) < (SELECT at, id FROM content.invalidation WHERE id = $4))
  ORDER BY at DESC, invalidation.id DESC LIMIT $5`;

/** Records clears in batches; no request waits. A crash or a full queue loses rows; at `info`, stdout has them all. */
export function createInvalidationLog(query: Database['query'], logger: Logger) {
  // Redaction costs more than the rest of a line, and these four fields hold no secrets.
  const lines = logger.child({}, { redact: [] });
  let queue: Row[] = [];
  let dropped = 0;
  let flushing: Promise<void> | undefined;

  async function write(): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.slice(0, maxBatch);
      await query('insert_invalidations', insert, [JSON.stringify(batch)]);
      // Removed only now: the rows wait while PostgreSQL is unreachable.
      queue = queue.slice(batch.length);
    }
  }

  function flush(): Promise<void> {
    flushing ??= write()
      .catch((error: unknown) =>
        logger.warn({ error, waiting: queue.length }, 'rows of the invalidation log not written; retrying'),
      )
      .finally(() => (flushing = undefined));
    return flushing;
  }

  const timer = setInterval(() => {
    if (dropped > 0)
      logger.warn({ dropped }, 'rows of the invalidation log were dropped; the log has these clears');
    dropped = 0;
    void flush();
  }, flushIntervalMs);
  timer.unref();

  return {
    /** Logs the clear at once and queues its row. Never throws. */
    add(target: Target, keysDeleted: number, { requestedBy, source }: Requester): void {
      const row = {
        target: targetName(target),
        requested_by: requestedBy,
        source,
        keys_deleted: keysDeleted,
      };
      lines.info(row, 'cleared');
      if (queue.length >= maxQueue) return void (dropped += 1);
      queue.push({ at: new Date(), ...row });
      // Not for each further row or hundred: while PostgreSQL is unreachable, every flush fails.
      if (queue.length === flushAt || queue.length % maxBatch === 0) void flush();
    },
    /** Lists rows after the row with the id `after`, newest first. The rows of this process are complete. */
    async list({ model, id, since }: InvalidationFilter, after: number | undefined, limit: number) {
      await flush();
      const targets = model && id && [targetName({ model, id }), targetName({ model, id: null })];
      const filter = [targets ?? null, targets ? null : (model ?? null), since ?? null, after ?? null];
      const read = async (rows: number) =>
        (await query<Row & { id: number }>('list_invalidations', select, [...filter, rows])).rows;
      return page(limit, read, (row) => ({ ...row, at: row.at.toISOString() }));
    },
    /** Writes the queued rows. */
    async close(): Promise<void> {
      clearInterval(timer);
      await flushing;
      await flush();
    },
  };
}

/** Removes the ids of these users from the requests for clears. Throws the errors of `query`. */
export async function eraseRequesters(query: Database['query'], userIds: readonly number[]): Promise<void> {
  const actors = userIds.map((id) => `user:${id}`);
  const log = `UPDATE content.invalidation SET requested_by = 'user' WHERE id = ANY (ARRAY(
                 SELECT id FROM content.invalidation
                 WHERE requested_by LIKE 'user:%' AND requested_by = ANY ($1) LIMIT 1000))`;
  await runInBatches(query, 'erase_requesters', log, [actors]);
  const pending = `UPDATE content.pending_clear SET requested_by = 'user' WHERE requested_by = ANY ($1)`;
  await query('erase_pending_requesters', pending, [actors]);
}
