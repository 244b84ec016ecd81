import { isUtf8 } from 'node:buffer';
import { deleteExpired, statements, type Database } from '@content-platform/chassis';
import type { FailedJob, listFailedJobs, Query } from '@content-platform/contract';
import type { Unprocessable } from './events/parse-event.ts';

export interface NewFailedJob extends Unprocessable {
  topic: string;
  partition: number;
  offset: string;
  key: Buffer | null;
  value: Buffer | null;
  /** the broker's timestamp, in ms since 1970 */
  messageAt: string;
}

type JobFilter = Omit<Query<typeof listFailedJobs>, 'limit' | 'cursor'>;

interface Row extends Omit<FailedJob, 'key' | 'value' | 'encoding' | 'failed_at'> {
  key: Buffer | null;
  value: Buffer | null;
  failed_at: Date;
}

type StoredJob = Pick<Row, 'class' | 'value'>;

interface GroupRow extends Row {
  count: number;
  first_failed_at: Date;
  last_failed_at: Date;
}

/** A page ends early at this size: a value may have 1 MB, and six times that when escaped in JSON. */
const maxPageBytes = 2_000_000;
const maxErrorLength = 500;
/** Jobs per DELETE statement: with 1 MB each it takes a second or two. */
const deleteSlice = 100;

const columns = `id::float8 AS id, class, error, topic, "partition", "offset"::float8 AS "offset", key, value, state,
  attempts, failed_at`;
const matches = `($1::text IS NULL OR class = $1) AND ($2::text IS NULL OR model = $2)
  AND ($3::text IS NULL OR state = $3) AND ($4::timestamptz IS NULL OR failed_at >= $4)`;

function filterValues({ class: name, model, state, since }: JobFilter) {
  return [name ?? null, model ?? null, state ?? null, since ?? null];
}

/** Removes what PostgreSQL refuses in text: NUL and lone surrogates, which parsers quote in their errors. */
function storable(error: string): string {
  return error.slice(0, maxErrorLength).toWellFormed().replaceAll('\0', '\uFFFD');
}

const isText = (bytes: Buffer | null): boolean => bytes === null || (isUtf8(bytes) && !bytes.includes(0));

function toJob(row: Row): FailedJob {
  const { key, value } = row;
  const encoding = isText(key) && isText(value) ? 'utf8' : 'base64';
  return {
    id: row.id,
    class: row.class,
    error: row.error,
    topic: row.topic,
    partition: row.partition,
    offset: row.offset,
    key: key?.toString(encoding) ?? null,
    value: value?.toString(encoding) ?? null,
    encoding,
    state: row.state,
    attempts: row.attempts,
    failed_at: row.failed_at.toISOString(),
  };
}

export type FailedJobStore = ReturnType<typeof createFailedJobStore>;

/** Stores unprocessable events. All methods throw HttpError 503 while PostgreSQL is unreachable. */
export function createFailedJobStore(query: Database['query']) {
  const { rows, first, affects } = statements(query);

  async function one(operation: string, text: string, values: unknown[]): Promise<FailedJob | undefined> {
    const row = await first<Row>(operation, text, values);
    return row && toJob(row);
  }

  return {
    /** Stores a job. Returns false if the job exists (a redelivery), or if the topic has an open `events_lost`. */
    add(job: NewFailedJob): Promise<boolean> {
      const text = `INSERT INTO content.failed_job
          (class, error, topic, "partition", "offset", key, value, message_at, model)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`;
      const { topic, partition, offset, key, value, messageAt, model } = job;
      const rest = [topic, partition, offset, key, value, messageAt, model];
      return affects('insert_failed_job', text, [job.class, storable(job.error), ...rest]);
    },

    /** Returns jobs with ids below `before`, newest first: fewer than `limit` if their values are large. */
    async list(filter: JobFilter, before: number | undefined, limit: number) {
      // octet_length does not read the value. The first job is always included.
      const text = `WITH newest AS (
          SELECT id, coalesce(octet_length(value), 0) + coalesce(octet_length(key), 0) AS size FROM content.failed_job
          WHERE ${matches} AND ($5::bigint IS NULL OR id < $5) ORDER BY id DESC LIMIT $6 + 1),
        place AS (
          SELECT id, row_number() OVER newer AS place, sum(size) OVER newer AS bytes
          FROM newest WINDOW newer AS (ORDER BY id DESC))
        SELECT ${columns}, (SELECT count(*)::int FROM newest) AS found FROM content.failed_job JOIN place USING (id)
        WHERE place <= $6 AND (bytes <= $7 OR place = 1) ORDER BY id DESC`;
      const values = [...filterValues(filter), before ?? null, limit, maxPageBytes];
      const found = await rows<Row & { found: number }>('list_failed_jobs', text, values);
      const items = found.map(toJob);
      const hasNext = (found[0]?.found ?? 0) > items.length;
      return { items, next_cursor: hasNext ? String(items.at(-1)!.id) : null };
    },

    /** Returns the classes, most frequent first, each with its newest job. An index counts; only the newest are read. */
    async groups(filter: JobFilter) {
      const text = `WITH groups AS (
          SELECT max(id) AS id, count(*)::int, min(failed_at) AS first_failed_at, max(failed_at) AS last_failed_at
          FROM content.failed_job WHERE ${matches} GROUP BY class)
        SELECT ${columns}, count, first_failed_at, last_failed_at
        FROM groups JOIN content.failed_job USING (id) ORDER BY count DESC, class`;
      return (await rows<GroupRow>('group_failed_jobs', text, filterValues(filter))).map((row) => ({
        class: row.class,
        count: row.count,
        first_failed_at: row.first_failed_at.toISOString(),
        last_failed_at: row.last_failed_at.toISOString(),
        example: toJob(row),
      }));
    },

    find: (id: number) =>
      one('read_failed_job', `SELECT ${columns} FROM content.failed_job WHERE id = $1`, [id]),

    /** Deletes a job. Returns false if there is none. */
    remove: (id: number) =>
      affects('delete_failed_job', 'DELETE FROM content.failed_job WHERE id = $1', [id]),

    /** Returns the fields that a retry needs. */
    load: (id: number) =>
      first<StoredJob>('load_failed_job', 'SELECT class, value FROM content.failed_job WHERE id = $1', [id]),

    /** Stores the result of a retry: success, or a new failure. Returns undefined if the job was deleted. */
    recordRetry: (id: number, failure?: Unprocessable) =>
      one(
        'retry_failed_job',
        `UPDATE content.failed_job SET attempts = attempts + 1, state = $2, retried_at = now(),
           class = coalesce($3, class), error = coalesce($4, error) WHERE id = $1 RETURNING ${columns}`,
        [id, failure ? 'open' : 'retried', failure?.class ?? null, failure ? storable(failure.error) : null],
      ),

    /** Returns the number of matching jobs, and the newest id. */
    async countMatching(filter: JobFilter): Promise<{ matched: number; newest: number }> {
      const text = `SELECT count(*)::int AS matched, coalesce(max(id), 0)::float8 AS newest
        FROM content.failed_job WHERE ${matches}`;
      const values = filterValues(filter);
      return (await first<{ matched: number; newest: number }>('match_failed_jobs', text, values))!;
    },

    /** Deletes up to 100 matching jobs with ids up to `newest`, and returns how many. Skips jobs that are being changed. */
    async removeMatching(filter: JobFilter, newest: number): Promise<number> {
      const text = `DELETE FROM content.failed_job WHERE id = ANY (ARRAY(
          SELECT id FROM content.failed_job WHERE ${matches} AND id <= $5 LIMIT ${deleteSlice} FOR UPDATE SKIP LOCKED))`;
      const { rowCount } = await query('delete_failed_jobs', text, [...filterValues(filter), newest]);
      return rowCount!;
    },

    /** Deletes the jobs that were retried over 30 days ago. Open jobs stay. */
    deleteRetried() {
      const old = `state = 'retried' AND coalesce(retried_at, failed_at) < now() - interval '30 days'`;
      return deleteExpired(query, 'forget_failed_jobs', 'content.failed_job', old, [], deleteSlice);
    },

    /** Returns ids of open jobs, the least retried first, then the oldest, so that no job blocks the others. */
    async listOpen(filter: JobFilter, limit: number): Promise<number[]> {
      const text = `SELECT id::float8 AS id FROM content.failed_job WHERE ${matches}
        ORDER BY attempts, failed_job.id LIMIT $5`;
      const values = [...filterValues({ ...filter, state: 'open' }), limit];
      return (await rows<{ id: number }>('list_open_jobs', text, values)).map(({ id }) => id);
    },
  };
}
