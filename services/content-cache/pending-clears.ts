import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Logger } from '@content-platform/chassis';
import type { Model } from '@content-platform/contract';
import { CacheError, type Clearing } from './cache/index.ts';
import type { Invalidator, Requester } from './invalidator.ts';
import type { Target } from './target.ts';

interface Row {
  id: string;
  model: Model;
  record_id: string | null;
  requested_by: string;
  created_at: Date;
}

const pageSize = 500;
const everyMs = 1_000;

const add = `INSERT INTO content.pending_clear (model, record_id, requested_by, source) VALUES ($1, $2, $3, $4)
  ON CONFLICT (model, coalesce(record_id, 0))
  DO UPDATE SET id = DEFAULT, requested_by = excluded.requested_by, source = excluded.source`;
const page = `SELECT id, model, record_id, requested_by, created_at FROM content.pending_clear ORDER BY id LIMIT $1`;
const pageAfter = `SELECT id, model, record_id FROM content.pending_clear WHERE id > $2 ORDER BY id LIMIT $1`;
const find = `SELECT FROM content.pending_clear WHERE model = $1 AND (record_id IS NULL OR record_id = $2) LIMIT 1`;
// A row that another process is about to remove is left to it.
const remove = `DELETE FROM content.pending_clear WHERE id IN
  (SELECT id FROM content.pending_clear WHERE id = ANY ($1) FOR UPDATE SKIP LOCKED)`;

export type PendingClears = ReturnType<typeof createPendingClears>;

/**
 * Clears that were refused, so that a sender that gives up leaves no old record behind. No row is locked while it is
 * carried out: clearing twice does no harm, a request that waits for a lock would. A newer request for the same target
 * gives its row a new id, which the removal after the older clear does not touch.
 */
export function createPendingClears(query: Database['query'], invalidator: Invalidator, logger: Logger) {
  async function carryOutPage(clearing: Clearing): Promise<number> {
    const { rows } = await query<Row>('list_pending_clears', page, [pageSize]);
    const done: string[] = [];
    const outcomes = await Promise.allSettled(
      rows.map(async ({ id, model, record_id, requested_by, created_at }) => {
        const target = { model, id: record_id === null ? null : Number(record_id) };
        const since = created_at.getTime();
        await invalidator.clear(clearing, target, { source: 'pending', requestedBy: requested_by, since });
        done.push(id);
      }),
    );
    if (done.length > 0) await query('delete_pending_clears', remove, [done]);
    const refused = outcomes.find((outcome) => outcome.status === 'rejected');
    if (refused) throw refused.reason;
    return rows.length;
  }

  /** Until there are none. Throws what the cache or PostgreSQL throws; what was carried out by then is removed. */
  async function carryOut(clearing: Clearing): Promise<void> {
    while ((await carryOutPage(clearing)) > 0);
  }

  return {
    /** Remembers a clear that was refused. Throws 503 while PostgreSQL is away. */
    async add({ model, id }: Target, { source, requestedBy }: Requester): Promise<void> {
      await query('insert_pending_clear', add, [model, id, requestedBy, source]);
    },

    /** Whether there is one for the record, or for its whole model. */
    async isFor({ model, id }: Target): Promise<boolean> {
      const { rowCount } = await query('find_pending_clear', find, [model, id]);
      return rowCount !== 0;
    },

    carryOut,

    /** Clears what they name in a part of the cache; they stay, for the other parts. Throws as `carryOut` does. */
    async carryOutPart(clearing: Clearing): Promise<void> {
      for (let after = '0'; ;) {
        const { rows } = await query<Row>('list_pending_clears', pageAfter, [pageSize, after]);
        await Promise.all(
          rows.map(({ model, record_id }) =>
            record_id === null ? clearing.clearPattern(model) : clearing.clearModel(model, Number(record_id)),
          ),
        );
        if (rows.length < pageSize) return;
        after = rows.at(-1)!.id;
      }
    },

    /** Carries them out every second: refusals come without a disconnect, too, and from other processes. */
    async watch(clearing: Clearing, isReachable: () => boolean, signal: AbortSignal): Promise<void> {
      let failing = false;
      while (!signal.aborted) {
        try {
          if (isReachable()) await carryOut(clearing);
          failing = false;
        } catch (error) {
          // The cache's state has lines of its own in the log.
          if (!failing && !(error instanceof CacheError)) logger.warn({ error }, 'pending clears wait');
          failing = true;
        }
        await sleep(everyMs, undefined, { signal }).catch(() => undefined);
      }
    },
  };
}
