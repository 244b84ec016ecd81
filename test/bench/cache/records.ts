import pg from 'pg';

export type Records = ReturnType<typeof openRecords>;

const empty = {
  model: 'webform',
  id: 100_000,
  title: 'Measured',
  body: [''],
  version: 1,
  updated_at: '2026-01-01T00:00:00.000Z',
};
/** Fills the reply to 1 KB. */
const text = 'x'.repeat(1024 - JSON.stringify(empty).length);

// Matches the candidates' queries, so that other queries are neither delayed nor counted.
const asked = 'WHERE model = $1 AND id = $2';

/** Counts each read and delays it after it has seen the record, as in a busy database. */
const slowDown = `
  CREATE SCHEMA bench;
  CREATE SEQUENCE bench.reads;
  CREATE TABLE bench.slowness (least double precision, most double precision);
  INSERT INTO bench.slowness VALUES (0, 0);
  CREATE FUNCTION bench.note_read() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    IF current_query() LIKE '%${asked}' THEN
      PERFORM nextval('bench.reads'), pg_sleep(least + random() * (most - least)) FROM bench.slowness;
    END IF;
    RETURN true;
  END
  $$;
  ALTER TABLE content.record RENAME TO every_record;
  CREATE VIEW content.record AS
    SELECT model, id, title, body, version, updated_at FROM content.every_record WHERE bench.note_read()`;

/** Opens the candidates' records as the database's owner. content-cache must have created the schema. */
export function openRecords(url: string) {
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  let table = 'content.record';
  let next = 100_000;

  return {
    async make(count: number): Promise<number[]> {
      const first = next;
      next += count;
      await pool.query(
        `INSERT INTO ${table} (model, id, title, body)
         SELECT 'webform', $1::bigint + n, 'Measured', $2 FROM generate_series(0, $3 - 1) AS n`,
        [first, JSON.stringify([text]), count],
      );
      return Array.from({ length: count }, (_, index) => first + index);
    },
    /** Changes a record. Resolves with its new version once it is committed. */
    async change(id: number): Promise<number> {
      const { rows } = await pool.query<{ version: string }>(
        `UPDATE ${table} SET title = title WHERE model = 'webform' AND id = $1 RETURNING version`,
        [id],
      );
      return Number(rows[0]!.version);
    },
    /** Sets the minimum and maximum time that PostgreSQL takes to read a record, in s. */
    async slow({ least, most }: { least: number; most: number }): Promise<void> {
      if (table === 'content.record') await pool.query(slowDown);
      table = 'content.every_record';
      await pool.query('UPDATE bench.slowness SET least = $1, most = $2', [least, most]);
    },
    /** Returns the number of reads since `slow`. */
    async reads(): Promise<number> {
      const { rows } = await pool.query<{ reads: string }>(
        'SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS reads FROM bench.reads',
      );
      return Number(rows[0]!.reads);
    },
    close: () => pool.end(),
  };
}
