import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { until } from '../../../test/support/wait.ts';
import { stack } from '../../../test/support/stack.ts';
import { openRecords, type Records } from './records.ts';
import { readSettings } from './settings.ts';

let database: string;
let owner: pg.Client;
let records: Records;

beforeAll(async () => {
  owner = new pg.Client(stack().postgres);
  ({ database } = readSettings());
  await owner.connect();
  records = openRecords(database);
});
afterAll(async () => {
  await records.close();
  await owner.end();
});

test('applies a change once in a new session after PostgreSQL ends the first', async () => {
  const { id, version } = await records.create('webform', undefined, 'New');
  await owner.query('begin');
  await owner.query('select from content.record where model = $1 and id = $2 for update', ['webform', id]);
  const edited = records.edit('webform', [id], 'Edited');
  await until('the edit waits for the row, and its session is ended', async () => {
    const { rowCount } = await owner.query(
      `select pg_terminate_backend(pid) from pg_locks join pg_stat_activity using (pid)
       where usename = 'content_server' and not granted`,
    );
    return rowCount !== 0;
  });
  await owner.query('rollback');
  expect(await edited).toEqual([{ model: 'webform', id, title: 'Edited', version: version + 1 }]);
  await records.remove('webform', id);
});

test('edits several records, or none if one is missing', async () => {
  const made = [
    await records.create('webform', undefined, 'New'),
    await records.create('webform', undefined, 'New'),
  ];
  const ids = made.map(({ id }) => id);
  const missing = Math.max(...ids) + 1_000_000;
  await expect(records.edit('webform', [...ids, missing], 'Edited')).rejects.toThrow(
    `One or more of webform ${[...ids, missing].join(', ')} do not exist: nothing was changed.`,
  );
  const edited = await records.edit('webform', ids, 'Edited');
  expect(new Map(edited.map(({ id, version }) => [id, version]))).toEqual(
    new Map(made.map(({ id, version }) => [id, version + 1])),
  );
  for (const id of ids) await records.remove('webform', id);
});

test('reports a refused login as a one-line problem', async () => {
  const wrong = new URL(database);
  wrong.password = 'wrong';
  const refused = openRecords(wrong.href);
  await expect(refused.edit('webform', [1], 'Edited')).rejects.toMatchObject({
    name: 'Problem',
    message: `PostgreSQL at ${wrong.host}: password authentication failed for user "content_server".`,
  });
  await refused.close();
});

test('retries an unreachable server, then throws a one-line problem', async () => {
  const [away, began] = [openRecords('postgres://content_server@127.0.0.1:1/platform', 1_000), Date.now()];
  const message = 'PostgreSQL at 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1.';
  await expect(away.edit('webform', [1], 'Edited')).rejects.toMatchObject({ name: 'Problem', message });
  expect(Date.now() - began).toBeGreaterThan(1_000);
  await away.close();
});
