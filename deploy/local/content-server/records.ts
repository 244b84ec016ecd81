import type { Model } from '@content-platform/contract';
import pg from 'pg';
import { Problem } from '../problem.ts';

export interface Saved {
  model: Model;
  id: number;
  title: string;
  version: number;
}

/** The content server's side of `content.record`. Each function resolves when its change is committed. */
export interface Records {
  /** @throws Problem when there is no such record */
  edit: (model: Model, id: number, title: string) => Promise<Saved>;
  /** Without an id: the next one that is free. @throws Problem when the id is taken */
  create: (model: Model, id: number | undefined, title: string) => Promise<Saved>;
  /** @throws Problem when there is no such record */
  remove: (model: Model, id: number) => Promise<Saved>;
  close: () => Promise<void>;
}

const RETURNED = 'returning model, id, title, version';

/** Connects as the role `content_server`, which may write records and nothing else. */
export function openRecords(database: string): Records {
  const pool = new pg.Pool({
    connectionString: database,
    max: 4,
    connectionTimeoutMillis: 5_000,
    statement_timeout: 5_000,
  });
  pool.on('error', () => {}); // the next query says what is wrong

  async function one(sql: string, values: unknown[], missing: string): Promise<Saved> {
    const { rows } = await pool.query<{ model: Model; id: string; title: string; version: string }>(
      sql,
      values,
    );
    const [row] = rows;
    if (!row) throw new Problem(missing);
    return { model: row.model, id: Number(row.id), title: row.title, version: Number(row.version) };
  }

  return {
    edit: (model, id, title) =>
      one(
        `update content.record set title = $3 where model = $1 and id = $2 ${RETURNED}`,
        [model, id, title],
        `There is no ${model} ${id}.`,
      ),
    create: (model, id, title) =>
      one(
        `insert into content.record (model, id, title, body)
         select $1, coalesce($2, 1 + (select coalesce(max(id), 0) from content.record where model = $1)), $3, '{}'
         on conflict do nothing ${RETURNED}`,
        [model, id ?? null, title],
        `${model} ${id} is there already: edit it, or choose another id.`,
      ),
    remove: (model, id) =>
      one(
        `delete from content.record where model = $1 and id = $2 ${RETURNED}`,
        [model, id],
        `There is no ${model} ${id}.`,
      ),
    close: () => pool.end(),
  };
}
