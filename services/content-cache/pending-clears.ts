import { repeat, settleAll, statements, type Database, type Logger } from '@content-platform/chassis';
import type { Model } from '@content-platform/contract';
import type { CacheClearer, ContentCache } from './cache/index.ts';
import { clearTarget, type Invalidator, type Requester, type Target, targetName } from './invalidator.ts';

interface Row {
  pendingId: string;
  target: Target;
  requestedBy: string;
  createdAt: Date;
}

const pageSize = 500;

// In a fixed order, so that two calls with the same records cannot deadlock.
const add = `INSERT INTO content.pending_clear (model, record_id, requested_by, source)
  SELECT $1, record_id, $3, $4 FROM unnest($2::bigint[]) AS record_id ORDER BY record_id
  ON CONFLICT (model, coalesce(record_id, 0))
  DO UPDATE SET id = DEFAULT, requested_by = excluded.requested_by, source = excluded.source`;
const page = `SELECT id AS "pendingId", json_build_object('model', model, 'id', record_id) AS target,
    requested_by AS "requestedBy", created_at AS "createdAt"
  FROM content.pending_clear WHERE id > $1 ORDER BY id LIMIT ${pageSize}`;
const findCovered = `SELECT DISTINCT wanted.model, wanted.id::float8 AS id
  FROM unnest($1::text[], $2::bigint[]) AS wanted (model, id)
  JOIN content.pending_clear AS pending
    ON pending.model = wanted.model AND coalesce(pending.record_id, 0) IN (0, wanted.id)`;
const countAll = 'SELECT count(*)::int AS count FROM content.pending_clear';
// Skips rows that another process is removing.
const remove = `DELETE FROM content.pending_clear WHERE id IN
  (SELECT id FROM content.pending_clear WHERE id = ANY ($1) FOR UPDATE SKIP LOCKED)`;

export type PendingClears = ReturnType<typeof createPendingClears>;

/**
 * Stores refused clears, so that a sender that gives up leaves no stale record. Rows are not locked during their clear:
 * clearing twice is harmless, while a lock would block requests. A newer request for the same target gives its row a new
 * id, which the removal after the older clear does not match.
 */
export function createPendingClears(query: Database['query'], invalidator: Invalidator, logger: Logger) {
  const { rows, first, run } = statements(query);
  const readPage = (after = '0') => rows<Row>('list_pending_clears', page, [after]);

  /** Clears that were carried out, and whose rows could not be removed: repeated, they would keep the cache empty. */
  const carriedOut = new Set<string>();

  async function clear(clearer: CacheClearer, { pendingId, target, requestedBy, createdAt }: Row) {
    if (carriedOut.has(pendingId)) return;
    await invalidator.clear(clearer, target, {
      source: 'pending',
      requestedBy,
      since: createdAt.getTime(),
    });
    carriedOut.add(pendingId);
  }

  async function removeRows(found: Row[]): Promise<void> {
    const done = found.map(({ pendingId }) => pendingId).filter((id) => carriedOut.has(id));
    if (done.length === 0) return;
    const { rowCount } = await query('delete_pending_clears', remove, [done]);
    // If another transaction has locked rows (its commit may wait for a lost standby), they and their ids stay.
    if (rowCount === done.length) carriedOut.clear();
  }

  /**
   * Carries out all stored clears and removes their rows. Returns the error of a failed removal. Throws the errors of the
   * cache, and of `query` if the rows cannot be read.
   */
  async function carryOutAll(clearer: CacheClearer): Promise<unknown> {
    const refused: unknown[] = [];
    const failures: unknown[] = [];
    let found: Row[] = [];
    let hasMore = true;
    while (hasMore) {
      // Begins after the last row: refused rows (of a lost primary) and locked rows stay and must not block other rows.
      found = await readPage(found.at(-1)?.pendingId);
      await settleAll(found.map((row) => clear(clearer, row))).catch((error: unknown) => refused.push(error));
      await removeRows(found).catch((error: unknown) => failures.push(error));
      // Without a failure, continues until a page is empty, so that it includes clears stored meanwhile: their ids are higher.
      hasMore = refused.length + failures.length > 0 ? found.length === pageSize : found.length > 0;
    }
    if (refused.length > 0) throw refused[0];
    return failures[0];
  }

  return {
    /** Stores the refused clears of different records; null stands for the whole model. Throws the errors of `query`. */
    add: (model: Model, ids: readonly (number | null)[], { requestedBy, source }: Requester) =>
      run('insert_pending_clear', add, [model, ids, requestedBy, source]),

    /** Returns the names of those records that a stored clear covers, by id or by model. */
    async covered(records: readonly { model: Model; id: number }[]): Promise<Set<string>> {
      const values = [records.map(({ model }) => model), records.map(({ id }) => id)];
      return new Set((await rows<Target>('find_pending_clears', findCovered, values)).map(targetName));
    },

    /** Returns the number of stored clears of all processes. */
    async count(): Promise<number> {
      return (await first<{ count: number }>('count_pending_clears', countAll))!.count;
    },

    /** Carries out all stored clears. Throws the errors of the cache, and of `query` if the rows cannot be read. */
    carryOut: async (clearer: CacheClearer): Promise<void> => void (await carryOutAll(clearer)),

    /** Clears the stored targets in a part of the cache. Keeps the rows for the other parts. Throws as carryOut() does. */
    async carryOutForPrimary(clearer: CacheClearer): Promise<void> {
      let found: Row[] = [];
      do {
        found = await readPage(found.at(-1)?.pendingId);
        await Promise.all(found.map(({ target }) => clearTarget(clearer, target)));
      } while (found.length === pageSize);
    },

    /** Carries out stored clears every second, also those of other processes. Returns a function that stops this. */
    watch(cache: ContentCache): () => Promise<void> {
      const work = async () => {
        if (cache.state !== 'usable' && cache.state !== 'partial') return;
        const failure = await carryOutAll(cache);
        if (failure !== undefined) throw failure;
      };
      return repeat(work, { everyMs: 1_000, logger, failure: 'pending clears not carried out; retrying' });
    },
  };
}
