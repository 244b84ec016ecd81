import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { createLogger, migrate } from '@content-platform/chassis';
import { createTestDatabase, type TestDatabase } from '../../test/support/test-database.ts';

let database: TestDatabase;
let owner: pg.Client;
const logger = createLogger('content-cache', 'silent');
const folder = new URL('migrations/', import.meta.url);

beforeAll(async () => {
  database = await createTestDatabase();
  // Two processes at once, as on a first start with two replicas.
  await Promise.all([1, 2].map(() => migrate({ url: database.url, schema: 'content', folder, logger })));
  owner = new pg.Client(database.url);
  await owner.connect();
});
afterAll(async () => {
  await owner.end();
  await database.drop();
});

const insert = `INSERT INTO content.record (model, id, title, body, version, updated_at)
  VALUES ('webform', $1, 'One', '{}', 99, '2001-01-01')`;

test('the version grows by one and the time is true, whatever the writer says', async () => {
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

test('whoever comes to a key has a newer version than all that were there', async () => {
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
  // Under another key it goes on from its own; under the first one another goes on from there.
  expect(await move(11, 12)).toBe(4);
  expect(await make(11)).toBe(4);
  await remove(11);
  expect(await make(13)).toBe(1);
  expect(await move(13, 11)).toBe(5);
  // Its own is newer than what was there.
  expect(await move(12, 13)).toBe(5);
  const gone = await owner.query(`SELECT id, version FROM content.deleted_record WHERE model = 'condition'
    AND id NOT IN (SELECT id FROM content.record WHERE model = 'condition') ORDER BY id`);
  expect(gone.rows).toEqual([{ id: '12', version: '4' }]);
});

test.each([
  ['letter', 1],
  ['webform', 0],
  ['webform', -1],
  ['webform', '9007199254740992'],
])('there cannot be a %s %s', async (model, id) => {
  const text = `INSERT INTO content.record (model, id, title, body) VALUES ($1, $2, '', '{}')`;
  await expect(owner.query(text, [model, id])).rejects.toMatchObject({ code: '23514' });
});

test('the content server may write records, and nothing else', async () => {
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

test('a process of the release before starts where a newer one has migrated', async () => {
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
