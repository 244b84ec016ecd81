import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { createLogger, migrate } from '@content-platform/chassis';
import { createTestDatabase, type TestDatabase } from '../../test/support/test-database.ts';
import { untilBlocked } from '../../test/support/locks.ts';

let database: TestDatabase;
let owner: pg.Client;
const clients: pg.Client[] = [];

/** Connects as the owner until the end of the file. */
async function connect(): Promise<pg.Client> {
  const client = new pg.Client(database.url);
  clients.push(client);
  await client.connect();
  return client;
}
const logger = createLogger('content-cache', 'silent');
const folder = new URL('migrations/', import.meta.url);

beforeAll(async () => {
  database = await createTestDatabase();
  // Two processes migrate at once, as on the first start with two replicas.
  await Promise.all([1, 2].map(() => migrate({ url: database.url, schema: 'content', folder, logger })));
  owner = await connect();
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.end()));
  await database.drop();
});

const insert = `INSERT INTO content.record (model, id, title, body, version, updated_at)
  VALUES ('webform', $1, 'One', '{}', 99, '2001-01-01')`;

test('sets version and time itself, whatever the writer sends', async () => {
  const before = Date.now() - 1_000;
  const rows = [];
  for (const statement of [
    `${insert} RETURNING *`,
    'UPDATE content.record SET version = 7 WHERE id = $1 RETURNING *',
    'UPDATE content.record SET version = version, updated_at = NULL WHERE id = $1 RETURNING *',
    `${insert} ON CONFLICT (model, id) DO UPDATE SET title = 'Two' RETURNING *`,
  ]) {
    rows.push((await owner.query<{ version: string; updated_at: Date }>(statement, [1])).rows[0]!);
  }
  expect(rows.map(({ version }) => version)).toEqual(['1', '2', '3', '4']);
  for (const { updated_at } of rows) expect(updated_at.getTime()).toBeGreaterThan(before);
});

test('gives each record a newer version than all earlier records with its key', async () => {
  const versionOf = async (statement: string) =>
    Number((await owner.query<{ version: string }>(`${statement} RETURNING version`)).rows[0]!.version);
  const make = (id: number) =>
    versionOf(`INSERT INTO content.record (model, id, title, body) VALUES ('condition', ${id}, '', '{}')`);
  const move = (from: number, to: number) =>
    versionOf(`UPDATE content.record SET id = ${to} WHERE model = 'condition' AND id = ${from}`);
  const remove = (id: number) =>
    versionOf(`DELETE FROM content.record WHERE model = 'condition' AND id = ${id}`);
  expect(await make(11)).toBe(1);
  await remove(11);
  expect(await make(11)).toBe(2);
  await remove(11);
  expect(await make(11)).toBe(3);
  // The moved record continues from its version; a new record at the old key continues from there, too.
  expect(await move(11, 12)).toBe(4);
  expect(await make(11)).toBe(4);
  await remove(11);
  expect(await make(13)).toBe(1);
  expect(await move(13, 11)).toBe(5);
  // Its own version is newer than that of the record before.
  expect(await move(12, 13)).toBe(5);
  const gone = await owner.query(`SELECT id, version FROM content.deleted_record WHERE model = 'condition'
    AND id NOT IN (SELECT id FROM content.record WHERE model = 'condition') ORDER BY id`);
  expect(gone.rows).toEqual([{ id: '12', version: '4' }]);
});

describe('a version never decreases', () => {
  let other: pg.Client;
  beforeAll(async () => {
    other = await connect();
  });

  const versionOf = async (id: number) => {
    const text = `SELECT version FROM content.record WHERE model = 'accesscode' AND id = $1`;
    return Number((await owner.query<{ version: string }>(text, [id])).rows[0]!.version);
  };
  const make = `INSERT INTO content.record (model, id, title, body) VALUES ('accesscode', $1, '', '{}')`;
  const change = `UPDATE content.record SET title = 'Changed' WHERE model = 'accesscode' AND id = $1`;
  const remove = `DELETE FROM content.record WHERE model = 'accesscode' AND id = $1`;
  const moveFrom99 = `UPDATE content.record SET id = $1 WHERE model = 'accesscode' AND id = 99`;

  /** Creates record `id` with version 3. */
  async function makeThird(id: number): Promise<void> {
    for (const statement of [make, change, change]) await owner.query(statement, [id]);
  }

  test.each([
    [21, 'inserted', make],
    [22, 'moved to the key', moveFrom99],
  ])('when record %i is %s while its deletion is not committed', async (id, _, arrive) => {
    await makeThird(id);
    await owner.query(`${make} ON CONFLICT DO NOTHING`, [99]);
    await owner.query('BEGIN');
    await owner.query(remove, [id]);
    const arrived = other.query(arrive, [id]);
    const observer = await connect();
    await untilBlocked({ query: (_operation, text) => observer.query(text) });
    await owner.query('COMMIT');
    await arrived;
    expect(await versionOf(id)).toBe(4);
  });

  test('when one statement moves a record to the key that another record leaves', async () => {
    await makeThird(31);
    await owner.query(make, [32]);
    const shift = `UPDATE content.record SET id = id - 1 WHERE model = 'accesscode' AND id IN (31, 32)`;
    await owner.query(shift);
    expect(await versionOf(31)).toBeGreaterThan(3);
  });

  test('when the inserting transaction has a snapshot from before the record: it must be repeated', async () => {
    await other.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await other.query('SELECT FROM content.record');
    await makeThird(41);
    await owner.query(remove, [41]);
    await expect(other.query(make, [41])).rejects.toMatchObject({ code: '40001' });
    await other.query('ROLLBACK');
    await other.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await other.query(make, [41]);
    await other.query('COMMIT');
    expect(await versionOf(41)).toBe(4);
  });
});

test('looks up deleted records by index in a session that inserted many', async () => {
  const session = await connect();
  try {
    const insertMany = `INSERT INTO content.record (model, id, title, body)
      SELECT 'pathway', id, '', '{}' FROM generate_series(1001, 3000) AS id`;
    await owner.query('TRUNCATE content.deleted_record');
    await owner.query('VACUUM ANALYZE content.deleted_record');
    // PostgreSQL keeps this statement's plan, made while the table was empty.
    await session.query(insertMany);
    await session.query(`DELETE FROM content.record WHERE model = 'pathway' AND id > 1000`);
    const scans = async () => {
      await session.query('SELECT pg_stat_force_next_flush()');
      const text = `SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'deleted_record'`;
      return Number((await session.query<{ seq_tup_read: string }>(text)).rows[0]!.seq_tup_read);
    };
    const before = await scans();
    await session.query(insertMany);
    expect((await scans()) - before).toBe(0);
  } finally {
    await session.query(`DELETE FROM content.record WHERE model = 'pathway'`);
    await session.query('TRUNCATE content.deleted_record');
  }
});

test.each([
  ['letter', 1],
  ['webform', 0],
  ['webform', -1],
  ['webform', '9007199254740992'],
])('refuses a %s %s', async (model, id) => {
  const text = `INSERT INTO content.record (model, id, title, body) VALUES ($1, $2, '', '{}')`;
  await expect(owner.query(text, [model, id])).rejects.toMatchObject({ code: '23514' });
});

test('lets the content server write only records', async () => {
  await owner.query('SET ROLE content_server');
  try {
    await owner.query(
      `INSERT INTO content.record (model, id, title, body) VALUES ('pathway', 1, 'New', '{}')`,
    );
    await owner.query(
      `UPDATE content.record SET title = 'Newer' WHERE model = 'pathway' AND id = 1 RETURNING *`,
    );
    await owner.query(`DELETE FROM content.record WHERE model = 'pathway'`);
    for (const forbidden of [
      'TRUNCATE content.record',
      'DROP TABLE content.record',
      'ALTER TABLE content.record DISABLE TRIGGER ALL',
      'SELECT FROM content.failed_job',
      'SELECT FROM content.invalidation',
      'DELETE FROM content.pending_clear',
      'DELETE FROM content.deleted_record',
      'SELECT FROM content.migration',
      'CREATE TABLE content.mine ()',
    ]) {
      await expect(owner.query(forbidden)).rejects.toMatchObject({ code: '42501' });
    }
  } finally {
    await owner.query('RESET ROLE');
  }
  const { rows } = await owner.query(`SELECT model, id FROM content.deleted_record WHERE model = 'pathway'`);
  expect(rows).toEqual([{ model: 'pathway', id: '1' }]);
});

test('keeps the newest of several open jobs for one loss', async () => {
  const older = mkdtempSync(join(tmpdir(), 'migrations-'));
  const upgraded = await createTestDatabase();
  const client = new pg.Client(upgraded.url);
  const upgrade = (files: URL) => migrate({ url: upgraded.url, schema: 'content', folder: files, logger });
  try {
    const files = readdirSync(folder).filter((file) => file < '006');
    for (const file of files) cpSync(new URL(file, folder), join(older, file));
    await upgrade(pathToFileURL(`${older}/`));
    await client.connect();
    for (const [offset, topic] of ['one', 'one', 'two'].entries())
      await client.query(
        `INSERT INTO content.failed_job (class, error, topic, "partition", "offset", message_at)
         VALUES ('events_lost', '', $1, 0, $2, 0)`,
        [topic, offset],
      );
    await upgrade(folder);
    const { rows } = await client.query('SELECT topic, state FROM content.failed_job ORDER BY id');
    expect(rows).toEqual([
      { topic: 'one', state: 'retried' },
      { topic: 'one', state: 'open' },
      { topic: 'two', state: 'open' },
    ]);
  } finally {
    await client.end();
    await upgraded.drop();
    rmSync(older, { recursive: true });
  }
});

test('lets the previous release start on a newer schema', async () => {
  const before = mkdtempSync(join(tmpdir(), 'migrations-'));
  try {
    const files = readdirSync(folder).toSorted();
    for (const file of files.slice(0, -1)) cpSync(new URL(file, folder), join(before, file));
    const notes = 'SELECT name FROM content.migration ORDER BY id';
    const { rows } = await owner.query(notes);
    await migrate({ url: database.url, schema: 'content', folder: pathToFileURL(`${before}/`), logger });
    expect((await owner.query(notes)).rows).toEqual(rows);
    expect(rows).toHaveLength(files.length);
  } finally {
    rmSync(before, { recursive: true });
  }
});
