import { deleteExpired, type Database } from '@content-platform/chassis';
import type { Model } from '@content-platform/contract';

/** The current state of a record that was changed, created or deleted. */
export interface ChangedRecord {
  model: Model;
  id: number;
  /** null: the record does not exist */
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

// A record that was created again after its deletion counts as created.
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

const stillSo = `SELECT place
  FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS seen (model, id, version, place)
  LEFT JOIN content.record USING (model, id)
  WHERE record.version IS NOT DISTINCT FROM seen.version`;

/** Finds recently changed records. All methods reject with the error of `query`. */
export function createChangedRecords(query: Database['query']) {
  return {
    /** Yields pages of the records that changed between `from` and `to` seconds ago, the oldest first. */
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

    /** Returns those of `records` that still have the same version. */
    async unchanged(records: readonly ChangedRecord[]): Promise<ChangedRecord[]> {
      const { rows } = await query<{ place: string }>('recheck_records', stillSo, [
        records.map(({ model }) => model),
        records.map(({ id }) => id),
        records.map(({ version }) => version),
      ]);
      return rows.map(({ place }) => records[Number(place) - 1]!);
    },

    /** Deletes the rows of deletions that are older than any cache entry. */
    forget: () =>
      deleteExpired(
        query,
        'forget_deleted_records',
        'content.deleted_record',
        `deleted_at < now() - interval '1 day'`,
      ),
  };
}
