import { setTimeout as sleep } from 'node:timers/promises';
import { runInBatches, statements, type Database } from '@content-platform/chassis';
import { models as allModels, type Model } from '@content-platform/contract';

/** The last change of a record. */
export interface Change {
  model: Model;
  id: number;
  /** of the record, or one more than that of the deleted record */
  version: number;
  isDeleted: boolean;
  changedAt: Date;
}

/** PostgreSQL's `pg_snapshot` as text, `xmin:xmax:xip,…`: which transactions were committed at a moment. */
export type Snapshot = string;

/** The place of a change in the log: the transaction and the key. */
export type Place = readonly [xid: string, model: string, id: number];

interface Position {
  epoch: string;
  /** False after a restore or a failover, because the transaction ids then come from another server. */
  hasSameOrigin: boolean;
  /** Whether the cache was emptied in this epoch. */
  isCleared: boolean;
  /** The changes before this snapshot were compared with the cache. */
  compared: Snapshot;
  now: Snapshot;
  /** The newest transaction of the tombstones that were removed. */
  purged: string;
}

interface Range {
  /** Leaves out the changes that this snapshot sees. */
  from: Snapshot;
  /** Leaves out the changes that this snapshot does not see. */
  to?: Snapshot | undefined;
  /** Begins after this place. */
  after?: Place | undefined;
  models?: readonly Model[];
  onlyExisting?: boolean;
}

/** Without a change, all fields but `now` are null. */
interface Row extends Change {
  now: Snapshot;
  xid: string;
}

/** Small, so that other reads do not wait long for a page of a large change. */
const pageSize = 100;

const position = `SELECT epoch, cleared AS "isCleared", compared::text, purged::text,
  pg_current_snapshot()::text AS now, origin = content.origin() AS "hasSameOrigin" FROM content.change_epoch`;
const page = `SELECT s.now::text, change.* FROM (SELECT pg_current_snapshot() AS now) AS s LEFT JOIN LATERAL (
    SELECT model, id::float8 AS id, version::float8 AS version, deleted AS "isDeleted", changed_at AS "changedAt", xid
    FROM content.change
    WHERE NOT pg_visible_in_snapshot(xid, $1) AND ($2::pg_snapshot IS NULL OR pg_visible_in_snapshot(xid, $2))
      AND (xid, model, id) > ($3, $4, $5) AND model = ANY ($6) AND NOT (deleted AND $7)
    ORDER BY xid, model, change.id LIMIT $8) AS change ON true`;
const purge = `WITH gone AS (
    DELETE FROM content.tombstone WHERE ctid = ANY (ARRAY(SELECT ctid FROM content.tombstone
      WHERE deleted_at < now() - interval '30 days' LIMIT ${pageSize} FOR UPDATE SKIP LOCKED))
    RETURNING xid),
  noted AS (UPDATE content.change_epoch SET purged = greatest(purged, (SELECT max(xid) FROM gone)))
  SELECT FROM gone`;

/** Reads the log of changes. All methods reject with the error of `query`. */
export function createChangeLog(query: Database['query']) {
  const { rows, first, run } = statements(query);

  /** Returns the first changes of a range, the snapshot that they were read with, and the last place if more may follow. */
  async function readPage(
    { from, to, after, models = allModels, onlyExisting = false }: Range,
    limit: number,
  ) {
    const place = after ?? [oldestOpen(from), '', 0];
    const values = [from, to ?? null, ...place, models, onlyExisting, limit];
    const found = await rows<Row>('list_changes', page, values);
    const changes: Change[] = found.filter(({ model }) => model !== null);
    const lastRow = changes.length === limit ? found.at(-1) : undefined;
    const last: Place | undefined = lastRow && [lastRow.xid, lastRow.model, lastRow.id];
    return { now: found[0]!.now, changes, last };
  }

  return {
    readPage,
    async position(): Promise<Position> {
      return (await first<Position>('find_change_position', position))!;
    },

    /** Begins another epoch, unless another process has done so since `seen`. Call it again if it has not begun. */
    startEpoch: (seen: string) => run('start_change_epoch', 'SELECT content.start_change_epoch($1)', [seen]),

    /** Yields pages of the last changes of all records whose transactions `to` sees and `from` does not see. */
    async *between(from: Snapshot, to: Snapshot): AsyncGenerator<Change[]> {
      let after: Place | undefined;
      do {
        const { changes, last } = await readPage({ from, to, after }, pageSize);
        if (changes.length > 0) yield changes;
        after = last;
        // Leaves the stores to reads between two pages of a large change. Without it, their p95 more than doubled.
        await sleep(10);
      } while (after);
    },

    /** Notes that the changes before a snapshot were compared with the cache, unless another epoch has begun. */
    setCompared(snapshot: Snapshot, epoch: string): Promise<void> {
      const text = 'UPDATE content.change_epoch SET compared = $1, cleared = true WHERE epoch = $2';
      return run('set_change_position', text, [snapshot, epoch]);
    },

    /** Deletes tombstones after 30 days. */
    purge: () => runInBatches(query, 'purge_tombstones', purge, [], pageSize),
  };
}

export type ChangeLog = ReturnType<typeof createChangeLog>;

/** Returns the oldest transaction that a snapshot may not see. */
export const oldestOpen = (snapshot: Snapshot): string => snapshot.split(':')[0]!;

/** Whether `one` was taken before `other`, by the next transaction id at that time. */
export const isBefore = (one: Snapshot, other: Snapshot): boolean =>
  BigInt(one.split(':')[1]!) < BigInt(other.split(':')[1]!);
