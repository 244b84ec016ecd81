import { isUtf8 } from 'node:buffer';
import { HttpError, type Database } from '@content-platform/chassis';
import type { FailedJob, FailedJobClass, FailedJobGroup, Model } from '@content-platform/contract';

export interface NewFailedJob {
  class: FailedJobClass;
  error: string;
  topic: string;
  partition: number;
  /** Digits. */
  offset: string;
  key: Buffer | null;
  value: Buffer | null;
  /** The broker's time of the message in ms since 1970, as digits. */
  messageAt: string;
  model: Model | null;
}

export interface JobFilter {
  class?: FailedJobClass | undefined;
  model?: Model | undefined;
  state?: FailedJob['state'] | undefined;
  /** ISO 8601. */
  since?: string | undefined;
}

export interface StoredJob {
  id: number;
  class: FailedJobClass;
  value: Buffer | null;
}

export interface JobPage {
  /** May be fewer than asked for where values are large. */
  jobs: FailedJob[];
  next: number | null;
}

interface Row {
  id: string;
  class: FailedJobClass;
  error: string;
  topic: string;
  partition: number;
  offset: string;
  key: Buffer | null;
  value: Buffer | null;
  state: FailedJob['state'];
  attempts: number;
  failed_at: Date;
}

interface GroupRow extends Row {
  count: string;
  first_failed_at: Date;
  last_failed_at: Date;
}

/** A page ends early when its keys and values are larger: each may have 1 MB, and six times that when escaped in JSON. */
const maxPageBytes = 2_000_000;
const maxErrorLength = 500;

const columns = 'id, class, error, topic, "partition", "offset", key, value, state, attempts, failed_at';
const matches = `($1::text IS NULL OR class = $1) AND ($2::text IS NULL OR model = $2)
  AND ($3::text IS NULL OR state = $3) AND ($4::timestamptz IS NULL OR failed_at >= $4)`;

function filterValues({ class: name, model, state, since }: JobFilter) {
  return [name ?? null, model ?? null, state ?? null, since ?? null];
}

/** What PostgreSQL takes as text: no NUL, no half characters. Parsers quote what they stumbled over. */
function storable(error: string): string {
  return error.slice(0, maxErrorLength).toWellFormed().replaceAll('\0', '\uFFFD');
}

function isText(bytes: Buffer | null): boolean {
  return bytes === null || (isUtf8(bytes) && !bytes.includes(0));
}

function toJob(row: Row): FailedJob {
  const { key, value } = row;
  const encoding = isText(key) && isText(value) ? 'utf8' : 'base64';
  return {
    id: Number(row.id),
    class: row.class,
    error: row.error,
    topic: row.topic,
    partition: row.partition,
    offset: Number(row.offset),
    key: key?.toString(encoding) ?? null,
    value: value?.toString(encoding) ?? null,
    encoding,
    state: row.state,
    attempts: row.attempts,
    failed_at: row.failed_at.toISOString(),
  };
}

export function noSuchJob(id: number): HttpError<'not_found'> {
  return new HttpError(404, 'not_found', `There is no failed job ${id}.`);
}

export type FailedJobStore = ReturnType<typeof createFailedJobStore>;

/** The events that could not be processed. Everything throws 503 while PostgreSQL is away. */
export function createFailedJobStore(query: Database['query']) {
  async function one(operation: string, text: string, values: unknown[]): Promise<FailedJob | undefined> {
    const { rows } = await query<Row>(operation, text, values);
    return rows[0] && toJob(rows[0]);
  }

  return {
    /** Stores a job; false when it is there already, because its event was delivered again. */
    async add(job: NewFailedJob): Promise<boolean> {
      const text = `INSERT INTO content.failed_job
          (class, error, topic, "partition", "offset", key, value, message_at, model)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`;
      const { topic, partition, offset, key, value, messageAt, model } = job;
      const rest = [topic, partition, offset, key, value, messageAt, model];
      const { rowCount } = await query('insert_failed_job', text, [job.class, storable(job.error), ...rest]);
      return rowCount === 1;
    },

    /** Newest first, from below the id `before` on. `next` is the `before` of the next page. */
    async list(filter: JobFilter, before: number | undefined, limit: number): Promise<JobPage> {
      // octet_length does not read the value. The first is always in, however large.
      const text = `WITH newest AS (
          SELECT id, coalesce(octet_length(value), 0) + coalesce(octet_length(key), 0) AS size FROM content.failed_job
          WHERE ${matches} AND ($5::bigint IS NULL OR id < $5) ORDER BY id DESC LIMIT $6 + 1),
        place AS (
          SELECT id, row_number() OVER newer AS place, sum(size) OVER newer AS bytes
          FROM newest WINDOW newer AS (ORDER BY id DESC))
        SELECT ${columns}, (SELECT count(*) FROM newest) AS found FROM content.failed_job JOIN place USING (id)
        WHERE place <= $6 AND (bytes <= $7 OR place = 1) ORDER BY id DESC`;
      const values = [...filterValues(filter), before ?? null, limit, maxPageBytes];
      const { rows } = await query<Row & { found: string }>('list_failed_jobs', text, values);
      const jobs = rows.map(toJob);
      return { jobs, next: Number(rows[0]?.found ?? 0) > jobs.length ? jobs.at(-1)!.id : null };
    },

    /**
     * By class, most frequent first, each with its newest job. An index has all that is counted; only the few newest
     * are read themselves.
     */
    async groups(filter: JobFilter): Promise<FailedJobGroup[]> {
      const text = `WITH groups AS (
          SELECT max(id) AS id, count(*), min(failed_at) AS first_failed_at, max(failed_at) AS last_failed_at
          FROM content.failed_job WHERE ${matches} GROUP BY class)
        SELECT ${columns}, count, first_failed_at, last_failed_at
        FROM groups JOIN content.failed_job USING (id) ORDER BY count DESC, class`;
      const { rows } = await query<GroupRow>('group_failed_jobs', text, filterValues(filter));
      return rows.map((row) => ({
        class: row.class,
        count: Number(row.count),
        first_failed_at: row.first_failed_at.toISOString(),
        last_failed_at: row.last_failed_at.toISOString(),
        example: toJob(row),
      }));
    },

    find: (id: number) =>
      one('read_failed_job', `SELECT ${columns} FROM content.failed_job WHERE id = $1`, [id]),

    /** False when there is none. */
    async remove(id: number): Promise<boolean> {
      return (
        (await query('delete_failed_job', 'DELETE FROM content.failed_job WHERE id = $1', [id])).rowCount ===
        1
      );
    },

    /** What is needed to process it again. */
    async load(id: number): Promise<StoredJob | undefined> {
      const text = 'SELECT class, value FROM content.failed_job WHERE id = $1';
      const { rows } = await query<Omit<StoredJob, 'id'>>('load_failed_job', text, [id]);
      return rows[0] && { id, ...rows[0] };
    },

    /** Notes that it was tried again: with success, or with a new failure. Undefined when it is gone. */
    noteRetry: (id: number, failure?: { class: FailedJobClass; error: string }) =>
      one(
        'retry_failed_job',
        `UPDATE content.failed_job SET attempts = attempts + 1, state = $2,
           class = coalesce($3, class), error = coalesce($4, error) WHERE id = $1 RETURNING ${columns}`,
        [id, failure ? 'open' : 'retried', failure?.class ?? null, failure ? storable(failure.error) : null],
      ),

    /** How many match. */
    async count(filter: JobFilter): Promise<number> {
      const text = `SELECT count(*) FROM content.failed_job WHERE ${matches}`;
      const { rows } = await query<{ count: string }>('count_failed_jobs', text, filterValues(filter));
      return Number(rows[0]!.count);
    },

    /** Ids of open jobs: those that were tried least first, then the oldest, so that no failure blocks the others. */
    async listOpen(filter: JobFilter, limit: number): Promise<number[]> {
      const text = `SELECT id FROM content.failed_job WHERE ${matches} ORDER BY attempts, id LIMIT $5`;
      const values = [...filterValues({ ...filter, state: 'open' }), limit];
      const { rows } = await query<{ id: string }>('list_open_jobs', text, values);
      return rows.map(({ id }) => Number(id));
    },
  };
}
