import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { createLogger, migrate } from '@content-platform/chassis';
import { createTestDatabase } from '../../test/support/test-database.ts';
import { untilBlocked } from '../../test/support/locks.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { useStarted } from '../../test/support/use-started.ts';

const clients: pg.Client[] = [];
afterAll(() => Promise.all(clients.map((client) => client.end())));
const database = useStarted(createTestDatabase);
let owner: pg.Client;

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
  // Two processes migrate at once, as on the first start with two replicas.
  await Promise.all([1, 2].map(() => migrate({ url: database.url, schema: 'content', folder, logger })));
  owner = await connect();
});

const insert = `INSERT INTO content.webform (id, title, body, version, updated_at)
  VALUES ($1, 'One', '{}', 99, '2001-01-01')`;

test('sets version and time itself, whatever the writer sends', async () => {
  const before = Date.now() - 1_000;
  const rows = [];
  for (const statement of [
    `${insert} RETURNING *`,
    'UPDATE content.webform SET version = 7 WHERE id = $1 RETURNING *',
    'UPDATE content.webform SET version = version, updated_at = NULL WHERE id = $1 RETURNING *',
    `${insert} ON CONFLICT (id) DO UPDATE SET title = 'Two' RETURNING *`,
  ])
    rows.push((await owner.query<{ version: string; updated_at: Date }>(statement, [1])).rows[0]!);
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
  expect(await make(11)).toBe(3);
  await remove(11);
  expect(await make(11)).toBe(5);
  // The moved record continues from its version; a new record at the old key continues from there, too.
  expect(await move(11, 12)).toBe(6);
  expect(await make(11)).toBe(7);
  await remove(11);
  expect(await make(13)).toBe(1);
  expect(await move(13, 11)).toBe(9);
  // The version of this record is newer than that of the previous record.
  expect(await move(12, 13)).toBe(7);
  const gone = await owner.query(`SELECT id, version FROM content.tombstone WHERE model = 'condition'`);
  expect(gone.rows).toEqual([{ id: '12', version: '7' }]);
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
    expect(await versionOf(id)).toBe(5);
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
    expect(await versionOf(41)).toBe(5);
  });
});

test('looks up deleted records by index in a session that inserted many', async () => {
  const session = await connect();
  try {
    const insertMany = `INSERT INTO content.record (model, id, title, body)
      SELECT 'pathway', id, '', '{}' FROM generate_series(1001, 3000) AS id`;
    await owner.query('TRUNCATE content.tombstone');
    await owner.query('VACUUM ANALYZE content.tombstone');
    // PostgreSQL keeps this statement's plan, made while the table was empty.
    await session.query(insertMany);
    await session.query(`DELETE FROM content.record WHERE model = 'pathway' AND id > 1000`);
    const scans = async () => {
      await session.query('SELECT pg_stat_force_next_flush()');
      const text = `SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'tombstone'`;
      return Number((await session.query<{ seq_tup_read: string }>(text)).rows[0]!.seq_tup_read);
    };
    const before = await scans();
    await session.query(insertMany);
    expect((await scans()) - before).toBe(0);
  } finally {
    await session.query(`DELETE FROM content.record WHERE model = 'pathway'`);
    await session.query('TRUNCATE content.tombstone');
  }
});

test.each([
  ['record', 'letter', 1, '23514'],
  // The trigger would move the row to another partition.
  ['webform', 'pathway', 1, '0A000'],
  ['webform', 'webform', 0, '23514'],
  ['webform', 'webform', -1, '23514'],
  ['webform', 'webform', '9007199254740992', '23514'],
])('the table %s refuses a %s %s', async (table, model, id, code) => {
  const text = `INSERT INTO content.${table} (model, id, title, body) VALUES ($1, $2, '', '{}')`;
  await expect(owner.query(text, [model, id])).rejects.toMatchObject({ code });
});

describe('the log of changes', () => {
  const changes = async (model: string) => {
    const text = `SELECT id::int, version::int, deleted FROM content.change WHERE model = $1 ORDER BY id`;
    return (await owner.query<{ id: number; version: number; deleted: boolean }>(text, [model])).rows;
  };
  const changed = (id: number, version: number, deleted = false) => ({ id, version, deleted });
  beforeEach(async () => {
    await owner.query('DELETE FROM content.condition');
    await owner.query('TRUNCATE content.tombstone');
  });
  const add = `INSERT INTO content.condition (id, title, body) VALUES (1, 'One', '{}')`;

  test.each<[string, string[], ReturnType<typeof changed>[]]>([
    ['upsert', [add, `${add} ON CONFLICT (id) DO UPDATE SET title = 'Two'`], [changed(1, 2)]],
    ['ignored insert', [add, `${add} ON CONFLICT DO NOTHING`], [changed(1, 1)]],
    ['deletion', [add, 'DELETE FROM content.condition'], [changed(1, 2, true)]],
    ['new key', [add, 'UPDATE content.condition SET id = 2'], [changed(1, 2, true), changed(2, 2)]],
    [
      'chain of new keys',
      [add, 'UPDATE content.condition SET id = 2', 'UPDATE content.condition SET id = 3'],
      [changed(1, 2, true), changed(2, 3, true), changed(3, 3)],
    ],
    ['recreation', [add, 'DELETE FROM content.condition', add], [changed(1, 3)]],
    [
      'deletion in one transaction',
      [`BEGIN; ${add}; DELETE FROM content.condition; COMMIT`],
      [changed(1, 2, true)],
    ],
    [
      'savepoint',
      [add, `BEGIN; SAVEPOINT s; UPDATE content.condition SET title = 'x'; ROLLBACK TO s; COMMIT`],
      [changed(1, 1)],
    ],
    ['rolled back change', [add, 'BEGIN; DELETE FROM content.condition; ROLLBACK'], [changed(1, 1)]],
    [
      'bulk change',
      [
        `INSERT INTO content.condition (id, title, body) SELECT n, '', '{}' FROM generate_series(1, 3) AS n`,
        `UPDATE content.condition SET title = 'x' WHERE id > 1`,
      ],
      [changed(1, 1), changed(2, 2), changed(3, 2)],
    ],
  ])('has one row for each key after a %s', async (_, statements, expected) => {
    for (const statement of statements) await owner.query(statement);
    expect(await changes('condition')).toEqual(expected);
  });

  test('has the records that COPY writes', async () => {
    const copy = new pg.Query('COPY content.condition (id, title, body) FROM STDIN');
    // pg itself refuses COPY.
    const handleCopyInResponse = (connection: {
      sendCopyFromChunk(rows: Buffer): void;
      endCopyFrom(): void;
    }) => {
      connection.sendCopyFromChunk(Buffer.from('5\tFive\t{}\n'));
      connection.endCopyFrom();
    };
    owner.query(Object.assign(copy, { handleCopyInResponse }));
    expect(await changes('condition')).toEqual([changed(5, 1)]);
  });

  test('a move to another model leaves a tombstone', async () => {
    await owner.query(add);
    await owner.query(`UPDATE content.record SET model = 'pathway' WHERE model = 'condition'`);
    expect(await changes('condition')).toEqual([changed(1, 2, true)]);
    await owner.query('DELETE FROM content.pathway');
  });
});

test('lets the content server write only records', async () => {
  await owner.query('SET ROLE content_server');
  try {
    await owner.query(`INSERT INTO content.pathway (id, title, body) VALUES (1, 'New', '{}')`);
    await owner.query(`UPDATE content.pathway SET title = 'Newer' WHERE id = 1 RETURNING *`);
    await owner.query('DELETE FROM content.pathway');
    for (const forbidden of [
      'TRUNCATE content.pathway',
      'TRUNCATE content.record',
      'SELECT FROM content.tombstone',
      'UPDATE content.change_epoch SET cleared = true',
      'SELECT content.start_change_epoch(gen_random_uuid())',
      'DROP TABLE content.record',
      'ALTER TABLE content.record DISABLE TRIGGER ALL',
      'SELECT FROM content.failed_job',
      'SELECT FROM content.invalidation',
      'DELETE FROM content.pending_clear',
      'DELETE FROM content.tombstone',
      'SELECT FROM content.migration',
      'CREATE TABLE content.mine ()',
    ])
      await expect(owner.query(forbidden)).rejects.toMatchObject({ code: '42501' });
  } finally {
    await owner.query('RESET ROLE');
  }
  const { rows } = await owner.query(`SELECT model, id FROM content.tombstone WHERE model = 'pathway'`);
  expect(rows).toEqual([{ model: 'pathway', id: '1' }]);
});

test('the records of another database have another origin', async () => {
  const other = await createTestDatabase();
  const client = new pg.Client(other.url);
  try {
    await migrate({ url: other.url, schema: 'content', folder, logger });
    await client.connect();
    const text = 'SELECT origin = content.origin() AS same, origin FROM content.change_epoch';
    const [mine, its] = [await owner.query(text), await client.query(text)];
    expect([mine.rows[0], its.rows[0]]).toMatchObject([{ same: true }, { same: true }]);
    expect(mine.rows[0]).not.toEqual(its.rows[0]);
  } finally {
    await client.end();
    await other.drop();
  }
});

test('the documented migration adds a model', async () => {
  const page = readFileSync(new URL('../../docs/concepts/content-model.md', import.meta.url), 'utf8');
  const [, statements] = /```sql\n\s+-- Up Migration\n([^]*?)```/.exec(page)!;
  await owner.query('BEGIN');
  try {
    // A developer may have followed the example.
    await owner.query(`DROP TABLE IF EXISTS content.article; ${statements!}`);
    await owner.query('SET LOCAL ROLE content_server');
    const text = `INSERT INTO content.article (id, title, body) VALUES (1, 'One', '{}') RETURNING model, version`;
    expect((await owner.query(text)).rows).toEqual([{ model: 'article', version: '1' }]);
  } finally {
    await owner.query('ROLLBACK');
  }
});

test('lets the previous release start on a newer schema', async () => {
  const before = temporaryFolder();
  const files = readdirSync(folder).toSorted();
  for (const file of files.slice(0, -1)) cpSync(new URL(file, folder), join(before, file));
  const notes = 'SELECT name FROM content.migration ORDER BY id';
  const { rows } = await owner.query(notes);
  await migrate({ url: database.url, schema: 'content', folder: pathToFileURL(`${before}/`), logger });
  expect((await owner.query(notes)).rows).toEqual(rows);
  expect(rows).toHaveLength(files.length);
});
