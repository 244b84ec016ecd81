import { setTimeout as sleep } from 'node:timers/promises';
import type { Model } from '@content-platform/contract';
import pg from 'pg';
import { Problem } from '../problem.ts';

export interface Saved {
  model: Model;
  id: number;
  title: string;
  version: number;
}

export type Records = ReturnType<typeof openRecords>;

const returnedColumns = 'returning model, id, title, version';
const firstPauseMs = 100;
const longestPauseMs = 2_000;

/** Without a connection nothing was changed; if PostgreSQL ended or refused the session, it rolled the change back. */
function isWorthRetrying(error: unknown, sent: boolean): boolean {
  if (error instanceof pg.DatabaseError) return /^(08|53|57P)/.test(error.code ?? '');
  return !sent;
}

function problem(database: string, error: unknown, sent: boolean): Problem {
  const { message, code } = error as { message?: string; code?: string };
  const unknown = sent && !(error instanceof pg.DatabaseError);
  const text = `PostgreSQL at ${new URL(database).host}: ${message || code || String(error)}`;
  return new Problem(unknown ? `${text}. The change may have been made or not.` : `${text}.`);
}

/**
 * Connects as the role `content_server`. Each function retries for `limitMs` while PostgreSQL is unreachable, for
 * example during a restart, and resolves after the commit. @throws Problem if PostgreSQL refuses or stays unavailable
 */
export function openRecords(database: string, limitMs = 15_000) {
  const pool = new pg.Pool({
    connectionString: database,
    max: 4,
    connectionTimeoutMillis: 5_000,
    statement_timeout: 5_000,
    query_timeout: 7_000, // for a server that does not respond
  });
  pool.on('error', () => {}); // the next query reports the error
  pool.on('connect', (client) => client.on('error', () => {}));

  async function query<R extends pg.QueryResultRow>(sql: string, values: unknown[]): Promise<R[]> {
    const deadline = Date.now() + limitMs;
    for (let pause = firstPauseMs; ; pause = Math.min(pause * 2, longestPauseMs)) {
      let client: pg.PoolClient | undefined;
      let failure: Error | undefined;
      try {
        client = await pool.connect();
        return (await client.query<R>(sql, values)).rows;
      } catch (error) {
        failure = error as Error;
        const sent = client !== undefined;
        if (!isWorthRetrying(error, sent) || Date.now() > deadline) throw problem(database, error, sent);
      } finally {
        client?.release(failure);
      }
      await sleep(pause);
    }
  }

  async function saveAll(sql: string, values: unknown[], noRowMessage: string): Promise<Saved[]> {
    const rows = await query<{ model: Model; id: string; title: string; version: string }>(sql, values);
    if (rows.length === 0) throw new Problem(noRowMessage);
    return rows.map((row) => ({ ...row, id: Number(row.id), version: Number(row.version) }));
  }
  const save = async (...statement: Parameters<typeof saveAll>) => (await saveAll(...statement))[0]!;

  return {
    /** Edits all records with these ids. @throws Problem without a change if a record does not exist */
    edit: (model: Model, ids: readonly number[], title: string): Promise<Saved[]> =>
      saveAll(
        `update content.${model} set title = $2 where id = any ($1)
           and cardinality($1) = (select count(*) from content.${model} where id = any ($1)) ${returnedColumns}`,
        [ids, title],
        ids.length === 1
          ? `There is no ${model} ${ids[0]}.`
          : `One or more of ${model} ${ids.join(', ')} do not exist: nothing was changed.`,
      ),
    /** Uses the next free ID if none is given. @throws Problem if the ID exists */
    create: (model: Model, id: number | undefined, title: string): Promise<Saved> =>
      save(
        `insert into content.${model} (id, title, body)
         select coalesce($1, 1 + (select coalesce(max(id), 0) from content.${model})), $2, '{}'
         on conflict do nothing ${returnedColumns}`,
        [id ?? null, title],
        `${model} ${id} exists already: edit it, or choose another id.`,
      ),
    /** @throws Problem if the record does not exist */
    remove: (model: Model, id: number): Promise<Saved> =>
      save(
        `delete from content.${model} where id = $1 ${returnedColumns}`,
        [id],
        `${model} ${id} was not found.`,
      ),
    close: () => pool.end(),
  };
}
