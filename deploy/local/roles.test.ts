import { afterAll, expect, test } from '@jest/globals';
import pg from 'pg';
import type { Database } from '@content-platform/chassis';
import { models, serviceOf, type ServiceName, services } from '@content-platform/contract';
import { createDeletedUserStore } from '../../services/auth/deleted-user-store.ts';
import { stack } from '../../test/support/stack.ts';
import { environmentOf } from './testing/environment.ts';

const clients: pg.Client[] = [];
afterAll(() => Promise.all(clients.map((client) => client.end())));

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  clients.push(client);
  await client.connect();
  return client;
}

const refused = { code: '42501' };
const withSchema = services.filter(({ schema }) => schema);

test.each(withSchema)(
  '$name reads its own tables and those of no other service',
  async ({ name, schema }) => {
    const client = await connect(environmentOf(name).DATABASE_URL!);
    const text = `SELECT table_schema AS schema, format('%I.%I', table_schema, table_name) AS name
                FROM information_schema.tables WHERE table_schema = ANY ($1)`;
    const owner = await connect(stack().postgres);
    const schemas = withSchema.map((service) => service.schema!.name);
    const { rows } = await owner.query<{ schema: string; name: string }>(text, [schemas]);
    expect(new Set(rows.map((row) => row.schema))).toEqual(new Set(schemas));
    for (const row of rows) {
      const read = client.query(`SELECT FROM ${row.name} LIMIT 1`);
      if (row.schema === schema!.name) await read;
      else await expect(read).rejects.toMatchObject(refused);
    }
    await expect(client.query(`CREATE TABLE ${schema!.name}.planted ()`)).rejects.toMatchObject(refused);
    await expect(client.query('CREATE SCHEMA planted')).rejects.toMatchObject(refused);
  },
);

test.each(['record', ...models])('content-cache cannot change content.%s', async (table) => {
  const client = await connect(environmentOf('content-cache').DATABASE_URL!);
  await expect(client.query(`UPDATE content.${table} SET title = 'x'`)).rejects.toMatchObject(refused);
});

test.each(services)('$name writes the slow log, and cannot change it', async ({ name }) => {
  const client = await connect(environmentOf(name).LOGS_DATABASE_URL!);
  await client.query(
    'INSERT INTO logs.slow_query (at, service, statement, duration_ms) SELECT now(), $1, $1, 1 LIMIT 0',
    [name],
  );
  await expect(client.query(`UPDATE logs.slow_query SET statement = ''`)).rejects.toMatchObject(refused);
});

test.each(services)(
  '$name reads deleted users only if it is auth, and no service changes them',
  async ({ name }) => {
    const client = await connect(environmentOf(name).LOGS_DATABASE_URL!);
    const erase = `SELECT logs.erase_users_in_batches('{}', '{}', 1)`;
    for (const read of ['SELECT FROM logs.deleted_user', `SELECT logs.erase_users('{}', '{}')`, erase])
      if (name === 'auth') await client.query(read);
      else await expect(client.query(read)).rejects.toMatchObject(refused);
    for (const write of ['DELETE FROM logs.deleted_user', 'INSERT INTO logs.deleted_user VALUES (1, now())'])
      await expect(client.query(write)).rejects.toMatchObject(refused);
  },
);

test.each(services)('$name does not get the password of the owner or of another service', ({ name }) => {
  const passwords = (service: ServiceName) =>
    Object.entries(environmentOf(service)).flatMap(([setting, value]) =>
      /^(LOGS_)?DATABASE_URL$/.test(setting) ? [new URL(value).password] : [],
    );
  const own = JSON.stringify(environmentOf(name));
  expect(own).not.toContain(new URL(stack().postgres).password);
  for (const other of services.filter((service) => service.name !== name))
    for (const password of passwords(other.name)) expect(own).not.toContain(password);
  if (!serviceOf(name).stores.includes('postgres')) expect(environmentOf(name).DATABASE_URL).toBeUndefined();
});

test('auth adds to the audit log, and can neither change nor delete its entries', async () => {
  const client = await connect(environmentOf('auth').DATABASE_URL!);
  const text = `INSERT INTO auth.audit (event, actor) VALUES ('client_disabled', 'command') RETURNING id`;
  const { id } = (await client.query<{ id: string }>(text)).rows[0]!;
  for (const attack of [
    `UPDATE auth.audit SET actor = 'user:1'`,
    'DELETE FROM auth.audit',
    'DROP VIEW auth.audit',
    'DROP TRIGGER add ON auth.audit',
    'SELECT FROM audit.person',
    `INSERT INTO audit.entry (event, details) VALUES ('login', '{}')`,
    'DELETE FROM audit.link',
    'DELETE FROM audit.unlinked',
    'SELECT audit.subject_of(1, NULL)',
    'GRANT USAGE ON SCHEMA audit TO current_user',
  ])
    // 55000: the view takes INSERT only.
    await expect(client.query(attack)).rejects.toMatchObject({
      code: expect.stringMatching(/^(42501|55000)$/),
    });
  const forged = `INSERT INTO auth.audit (id, at, event) VALUES (1, '2020-01-01', 'login') RETURNING id, at > now() AS new`;
  const { rows } = await client.query<{ id: string; new: boolean }>(forged);
  expect([Number(rows[0]!.id) > Number(id), rows[0]!.new]).toEqual([true, true]);
  await client.query('SELECT auth.delete_expired_audit(1000)');
  expect((await client.query('SELECT FROM auth.audit WHERE id = $1', [id])).rowCount).toBe(1);
});

test('auth cannot make the audit log forget a user who exists', async () => {
  const client = await connect(environmentOf('auth').DATABASE_URL!);
  const owner = await connect(stack().postgres);
  const known = `SELECT DISTINCT user_id FROM audit.person JOIN auth.user ON id = user_id ORDER BY user_id LIMIT 1`;
  const [user] = (await owner.query<{ user_id: string }>(known)).rows;
  await client.query('SELECT auth.erase_audit_persons(ARRAY[$1::bigint])', [user!.user_id]);
  expect((await owner.query(known)).rows).toEqual([user]);
  await expect(client.query('SELECT auth.add_deleted_user($1)', [user!.user_id])).rejects.toThrow('exists');
  await expect(client.query('INSERT INTO auth.deleted_user VALUES (1, 1)')).rejects.toMatchObject(refused);
});

test('auth can delete the oldest entries of the feed of deleted users', async () => {
  const client = await connect(environmentOf('auth').DATABASE_URL!);
  const query = (_operation: string, text: string, values?: readonly unknown[]) =>
    client.query(text, values as unknown[]);
  await createDeletedUserStore(query as Database['query']).deleteExpired();
});

test.each(['postgres', 'logs'] as const)(
  'functions with the rights of the owner of %s do not use types of their caller',
  async (database) => {
    const client = await connect(stack()[database]!);
    // PostgreSQL searches pg_temp first unless it is named.
    const text = `SELECT p.oid::regprocedure AS name FROM pg_proc AS p
                  WHERE prosecdef AND pronamespace <> 'pg_catalog'::regnamespace
                    AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (proconfig), false)`;
    expect((await client.query(text)).rows).toEqual([]);
  },
);

test('auth cannot get the rights of the owner with a type that the audit log uses', async () => {
  const client = await connect(environmentOf('auth').DATABASE_URL!);
  await client.query(`
    CREATE FUNCTION pg_temp.attack(value pg_catalog.uuid) RETURNS boolean LANGUAGE plpgsql AS
      $$ BEGIN RAISE 'run by %', current_user; END $$;
    CREATE DOMAIN pg_temp.uuid AS pg_catalog.uuid CHECK (pg_temp.attack(VALUE));`);
  await client.query(
    `INSERT INTO auth.audit (event, actor, user_id) VALUES ('client_disabled', 'command', 1)`,
  );
});
