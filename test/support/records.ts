import { randomInt } from 'node:crypto';
import pg from 'pg';
import type { Model } from '@content-platform/contract';
import { stack } from './stack.ts';

let pool: pg.Pool | undefined;

/** Returns a pool for the platform database, as its owner. Call `closeRecords` afterwards; `describeEndpoint` does so. */
export function database(): pg.Pool {
  if (!pool) {
    pool = new pg.Pool({ connectionString: stack().postgres, max: 4 });
    // Tests kill PostgreSQL: an idle connection that breaks is expected.
    pool.on('error', () => undefined);
  }
  return pool;
}

export async function closeRecords(): Promise<void> {
  await pool?.end();
  pool = undefined;
}

/** Returns an id that no demo record and no other test uses. */
export function freshId(): number {
  return randomInt(1_000_000, 2 ** 47);
}

/** Creates or changes a record as a content server would. Resolves with the new version once it is committed. */
export async function save(model: Model, id: number, title: string, body: unknown = { title }) {
  const { rows } = await database().query<{ version: string }>(
    `INSERT INTO content.${model} (id, title, body) VALUES ($1, $2, $3)
     ON CONFLICT (id) DO UPDATE SET title = excluded.title, body = excluded.body RETURNING version`,
    [id, title, JSON.stringify(body)],
  );
  return Number(rows[0]!.version);
}

export async function remove(model: Model, id: number): Promise<void> {
  await database().query('DELETE FROM content.record WHERE model = $1 AND id = $2', [model, id]);
}
