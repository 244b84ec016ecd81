import type { Database } from '@content-platform/chassis';
import { deleteOld } from '@content-platform/chassis';
import type { Model } from '@content-platform/contract';

/** A record that was changed, created or deleted, as it is now. */
export interface ChangedRecord {
  model: Model;
  id: number;
  /** Null: it does not exist. */
  version: number | null;
  changedAt: Date;
}

interface Row {
  model: Model;
  id: string;
  version: string | null;
  changed_at: Date;
  position: string;
}

const pageSize = 1_000;

// Of a record that was made anew after it was deleted, the newer change counts.
const changed = `
  SELECT model, id, version, at AS changed_at, at::text AS position
  FROM (SELECT model, id, version, updated_at AS at FROM content.record
        UNION ALL
        SELECT model, id, NULL, deleted_at FROM content.deleted_record AS deleted
        WHERE NOT EXISTS (SELECT FROM content.record WHERE model = deleted.model AND id = deleted.id)) AS change
  WHERE at > clock_timestamp() - make_interval(secs => $1) AND at <= clock_timestamp() - make_interval(secs => $2)
    AND (at, model, id) > ($3::timestamptz, $4, $5)
  ORDER BY at, model, id
  LIMIT ${pageSize}`;

const isStill = `SELECT FROM (SELECT) AS one
  LEFT JOIN content.record ON model = $1 AND id = $2 WHERE version IS NOT DISTINCT FROM $3`;

/** Which records were changed lately. Everything throws what `query` throws. */
export function createChangedRecords(query: Database['query']) {
  return {
    /** Pages of those that were changed between `from` and `to` seconds ago, the oldest first. */
    async *between(from: number, to: number): AsyncGenerator<ChangedRecord[]> {
      let after: [string, string, string | number] = ['-infinity', '', 0];
      for (;;) {
        const { rows } = await query<Row>('list_changed_records', changed, [from, to, ...after]);
        yield rows.map(({ model, id, version, changed_at }) => ({
          model,
          id: Number(id),
          version: version === null ? null : Number(version),
          changedAt: changed_at,
        }));
        const last = rows.at(-1);
        if (!last || rows.length < pageSize) return;
        after = [last.position, last.model, last.id];
      }
    },

    /** Whether the record still is as it was then. */
    async isUnchanged({ model, id, version }: ChangedRecord): Promise<boolean> {
      const { rowCount } = await query('recheck_record', isStill, [model, id, version]);
      return rowCount === 1;
    },

    /** Deletions that no cache remembers any more. */
    forget: () =>
      deleteOld(
        query,
        'forget_deleted_records',
        'content.deleted_record',
        `deleted_at < now() - interval '1 day'`,
      ),
  };
}
