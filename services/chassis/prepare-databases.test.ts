import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { postgresRefusal } from '../../test/faults/faulty-servers.ts';
import { startProxy } from '../../test/support/proxy.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/test-database.ts';
import { until } from '../../test/support/wait.ts';
import { ConfigError } from './config.ts';
import { createLogger } from './logger.ts';
import { migrate, withClient } from './migrations.ts';
import { prepareDatabases } from './prepare-databases.ts';

let database: TestDatabase;
const roles = ['letters', 'devices'].map((name) => `test_${name}_${process.pid}`);
const [letters, devices] = roles as [string, string];
const folder = new URL('../devices/migrations/', import.meta.url);
const log: string[] = [];
const logger = createLogger('test', 'info', { write: (line) => void log.push(line) });

beforeAll(async () => void (database = await createTestDatabase()));
afterAll(async () => {
  await withClient(database.url, async (owner) => {
    for (const role of roles)
      await owner.query(`DROP OWNED BY ${role}`).then(
        () => owner.query(`DROP ROLE ${role}`),
        () => {},
      );
  });
  await database.drop();
});

const asUser = (username: string, password: string): string =>
  Object.assign(new URL(database.url), { username, password }).href;
const prepare = (name: 'letters' | 'devices', roleUrl: string, platform = database.url) =>
  prepareDatabases(name, { platform, roleUrl, logger });
const asks = (url: string, text: string) => withClient(url, (client: pg.Client) => client.query(text));

test('creates a role with rights on the tables of its service only, and repeats without a change', async () => {
  const url = asUser(letters, 'first');
  await Promise.all([prepare('letters', url), prepare('devices', asUser(devices, 'own'))]);
  await prepare('letters', url);
  await asks(url, 'DELETE FROM letters.letter');
  await asks(url, 'SELECT FROM letters.idempotency_key');
  for (const text of [
    'SELECT FROM devices.device',
    'DELETE FROM letters.migration',
    'TRUNCATE letters.letter',
    'CREATE TABLE letters.planted ()',
  ])
    await expect(asks(url, text)).rejects.toMatchObject({ code: '42501' });
});

test('sets a changed password once, which is in no statement', async () => {
  const url = asUser(letters, "second's \u00e4nd long");
  const sent = jest.spyOn(pg.Client.prototype, 'query');
  for (let time = 0; time < 2; time += 1) await prepare('letters', url);
  const changes = JSON.stringify(sent.mock.calls).match(/ALTER ROLE \S+ LOGIN PASSWORD '.{13}/g);
  sent.mockRestore();
  expect(changes).toEqual([expect.stringMatching(/'SCRAM-SHA-256$/)]);
  await asks(url, 'SELECT FROM letters.letter');
  await expect(asks(asUser(letters, 'first'), 'SELECT 1')).rejects.toMatchObject({ code: '28P01' });
});

test('takes a right away that a release no longer gives', async () => {
  const url = asUser(letters, 'third');
  await asks(database.url, `GRANT TRUNCATE ON letters.letter TO ${letters}`);
  await prepare('letters', url);
  await expect(asks(url, 'TRUNCATE letters.letter')).rejects.toMatchObject({ code: '42501' });
});

test('names what to do if the owner may not create roles', async () => {
  // This role may not create roles.
  const refused = prepare('devices', asUser('test_new_role', 'any'), asUser(devices, 'own'));
  await expect(refused).rejects.toThrow(/may not create the role test_new_role .*ALTER ROLE \S+ CREATEROLE/);
});

test.each(['pass/word', '100%'])('refuses a role URL with the password %s', async (password) => {
  const refused = prepare('letters', `postgres://letters:${password}@localhost/platform`);
  await expect(refused).rejects.toThrow(ConfigError);
});

test('a service waits until the owner has migrated its schema', async () => {
  const url = asUser(devices, 'own');
  await asks(database.url, `DELETE FROM devices.migration WHERE name = '001-devices'`);
  let ready = false;
  log.length = 0;
  const waiting = migrate({ url, schema: 'devices', folder, logger }).then(() => (ready = true));
  await until('it says why it waits', () => log.some((line) => line.includes('services/chassis/migrate.ts')));
  expect(ready).toBe(false);
  await asks(database.url, `INSERT INTO devices.migration (name, run_on) VALUES ('001-devices', now())`);
  await waiting;
});

test.each([
  ['08P01', 'unsupported startup parameter: statement_timeout', 'PostgreSQL refuses the connection: '],
  ['57014', 'canceling statement due to user request', ''],
])('does not retry after the error %s: %s', async (code, refusal, prefix) => {
  const proxy = await startProxy(new URL(database.url));
  proxy.replace(postgresRefusal(code, refusal));
  const migrated = migrate({ url: proxy.url, schema: 'devices', folder, logger });
  await expect(migrated).rejects.toThrow(`${prefix}${refusal}`);
  await proxy.close();
});
