import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { migrateLogs, withClient } from '@content-platform/chassis';
import { createTestDatabase } from '../../test/support/test-database.ts';
import { holdOpen, untilBlocked } from '../../test/support/locks.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { startErasure } from './erasure.ts';
import { byUser } from './audit-store.ts';
import { replayDeletions } from './commands/replay-deletions.ts';
import { verifyAudit } from './commands/verify-audit.ts';
import { createStores } from './stores.ts';
import { runCommand, useAuth } from './testing/start-auth.ts';

const auth = useAuth();
beforeEach(() => auth.sql('TRUNCATE auth.deleted_user, auth.deleted_user_reader'));

let made = 0;
async function newUser(): Promise<number> {
  const user = { email: `user-${(made += 1)}@example.com`, name: 'A Person', passwordHash: null };
  return (await auth.stores.users.create({ ...user, roles: ['user'] }))!.id;
}
const feed = async (after = 0, reader = 'letters') => {
  const { users, last } = await auth.stores.deletedUsers.confirmAndList(after, reader);
  return { ids: users.map(({ id }) => id), last };
};

test('a reader of the feed sees a deletion that began earlier and ended later', async () => {
  const [first, second] = [await newUser(), await newUser()];
  const commit = await holdOpen(auth.database, (query) => createStores(query).users.delete(first));
  const later = auth.stores.users.delete(second);
  await untilBlocked(auth.database);
  const before = await feed();
  expect(before).toEqual({ ids: [], last: 0 });
  await commit();
  await later;
  const { ids, last } = await feed(before.last);
  expect(ids).toEqual([first, second]);
  expect(await feed(last)).toEqual({ ids: [], last });
});

test('a deletion that is rolled back is not in the feed, and one by SQL is', async () => {
  const [kept, deleted] = [await newUser(), await newUser()];
  const failing = auth.stores.transaction(async ({ users }) => {
    await users.delete(kept);
    throw new Error('rolled back');
  });
  await expect(failing).rejects.toThrow('rolled back');
  await auth.sql('DELETE FROM auth.user WHERE id = $1', deleted);
  expect((await feed()).ids).toEqual([deleted]);
});

test('positions of deletions after a restore are above those of the lost ones', async () => {
  await auth.stores.users.delete(await newUser());
  const { last } = await feed();
  await auth.sql('TRUNCATE auth.deleted_user');
  const user = await newUser();
  await auth.stores.users.delete(user);
  expect((await feed(last)).ids).toEqual([user]);
});

test('names the reader that is behind, also one that never asked', async () => {
  await auth.stores.users.delete(await newUser());
  await auth.sql(`UPDATE auth.deleted_user SET deleted_at = now() - interval '2 h'`);
  const { last } = await feed(0, 'devices');
  await feed(last, 'letters');
  // Asking again for an earlier position does not undo the progress.
  await feed(0, 'letters');
  const lags = await auth.stores.deletedUsers.lagOf(['letters', 'devices', 'media-upload']);
  const bySeconds = Object.fromEntries(
    lags.map(({ reader, seconds }) => [reader, Math.round(seconds / 3_600)]),
  );
  expect(bySeconds).toEqual({ letters: 0, devices: 2, 'media-upload': 2 });
});

test('the audit log forgets a deleted user and addresses of entries about this user only, and is intact', async () => {
  const [user, other] = [await newUser(), await newUser()];
  const { audit } = auth.stores;
  await audit.add({ ...byUser(user, '192.0.2.1'), event: 'login' });
  await audit.add({ userId: user, address: '192.0.2.2', event: 'login_failed' });
  for (const userId of [user, other])
    await audit.add({ userId, address: '192.0.2.3', event: 'login_failed' });
  await audit.add({ ...byUser(other, '192.0.2.1'), event: 'login' });
  await audit.link(1_000);
  await auth.stores.users.delete(user);
  await expect(auth.stores.deletedUsers.add(other)).rejects.toThrow('exists');
  // An entry of a request that ended after the deletion.
  await audit.add({ userId: user, address: '192.0.2.4', event: 'login_failed' });
  await auth.stores.deletedUsers.erase([user, other]);
  await audit.link(1_000);
  const entries = await audit.list({}, undefined, 6);
  expect(entries.toReversed()).toMatchObject([
    { event: 'login', user_id: null, actor: 'user', address: null },
    { event: 'login_failed', user_id: null, address: null },
    { event: 'login_failed', user_id: null, address: '192.0.2.3' },
    { event: 'login_failed', user_id: other, address: '192.0.2.3' },
    { event: 'login', user_id: other, actor: `user:${other}`, address: '192.0.2.1' },
    { event: 'login_failed', user_id: null, address: null },
  ]);
  expect(await auth.run(verifyAudit, [])).toMatch(/^The audit log is intact/);
});

test('requests of a deleted user for a new password are deleted, with their IP addresses', async () => {
  const [deleted, other] = [await newUser(), await newUser()];
  const text = `INSERT INTO auth.password_reset (user_id, address, next_attempt_at) VALUES ($1, '192.0.2.1', NULL)`;
  for (const id of [deleted, other]) await auth.sql(text, id);
  await auth.stores.users.delete(deleted);
  await auth.stores.deletedUsers.erase([deleted, other]);
  expect(await auth.sql('SELECT user_id::int FROM auth.password_reset')).toEqual([{ user_id: other }]);
});

test('deletes entries of the feed after 400 days', async () => {
  const [old, recent] = [await newUser(), await newUser()];
  for (const id of [old, recent]) await auth.stores.users.delete(id);
  const age = `UPDATE auth.deleted_user SET deleted_at = now() - make_interval(days => $2) WHERE id = $1`;
  await auth.sql(age, old, 401);
  await auth.sql(age, recent, 399);
  await auth.stores.deletedUsers.deleteExpired();
  expect((await feed()).ids).toEqual([recent]);
});

describe('replay-deletions', () => {
  const logs = useStarted(createTestDatabase);
  const inLogs = (text: string, values: unknown[] = []) =>
    withClient(logs.url, async (client) => (await client.query<{ id: string }>(text, values)).rows);
  const logDeletion = (id: number, ago: string) =>
    inLogs(`SELECT logs.erase_users(ARRAY[$1::bigint], ARRAY[now() - $2::interval])`, [id, ago]);
  beforeAll(async () => {
    await migrateLogs(logs.url, auth.logger);
    process.env['LOGS_DATABASE_URL'] = logs.url;
  });
  beforeEach(() => inLogs('TRUNCATE logs.deleted_user'));
  afterAll(() => void delete process.env['LOGS_DATABASE_URL']);
  const replay = () => runCommand(auth.databaseUrl, replayDeletions, []);

  test('deletes restored users again, and gives none of their ids to a new user', async () => {
    const [restored, kept] = [await newUser(), await newUser()];
    await auth.sql(`UPDATE auth.user SET created_at = now() - interval '2 days' WHERE id = $1`, restored);
    const later = kept + 100;
    for (const id of [restored, later]) await logDeletion(id, '1 day');
    expect(await replay()).toMatch(
      /^Deleted 2 of 2 users again; 0 were deleted already\.\nThe services erase/,
    );
    expect((await feed()).ids).toEqual([restored, later]);
    expect(await auth.stores.users.findById(restored)).toBeUndefined();
    expect(await auth.stores.users.findById(kept)).toBeDefined();
    expect(await newUser()).toBeGreaterThan(later);
    expect(await replay()).toBe('Deleted 0 of 2 users again; 2 were deleted already.');
  });

  test('keeps a user who was created after the deletion of another user with this id', async () => {
    const id = await newUser();
    await logDeletion(id, '1 min');
    expect(await replay()).toBe(
      'Deleted 0 of 1 users again; 0 were deleted already.\nSkipped 1: their ids belong to users who were created later.',
    );
    expect(await auth.stores.users.findById(id)).toBeDefined();
    expect((await feed()).ids).toEqual([]);
  });

  test('deletes the last admin as well: the operator creates another one', async () => {
    await auth.sql(`UPDATE auth.user SET roles = '{user}'`);
    const id = await newUser();
    const admin = `UPDATE auth.user SET roles = '{admin}', created_at = now() - interval '2 days' WHERE id = $1`;
    await auth.sql(admin, id);
    await logDeletion(id, '1 day');
    expect(await replay()).toMatch(/^Deleted 1 of 1/);
  });

  test('finds a deletion that the running service has recorded while it erases slow requests in batches', async () => {
    const limit = `CREATE FUNCTION logs.limit_rows() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN IF (SELECT count(*) FROM changed) > 10000 THEN RAISE 'too many'; END IF; RETURN NULL; END $$;
      CREATE TRIGGER limit_rows AFTER UPDATE ON logs.slow_request REFERENCING NEW TABLE AS changed
      FOR EACH STATEMENT EXECUTE FUNCTION logs.limit_rows()`;
    await inLogs(limit);
    const user = await newUser();
    const slow = `INSERT INTO logs.slow_request
                    (at, service, method, route, status, duration_ms, request_id, user_id)
                  SELECT now(), 'test', 'GET', '/', 200, 501, 'x', $1 FROM generate_series(1, 25000)`;
    await inLogs(slow, [String(user)]);
    const stops: (() => unknown)[] = [];
    const config = { LOGS_DATABASE_URL: logs.url };
    const onStop = (stop: () => unknown) => void stops.unshift(stop);
    const { logger, metrics, database } = auth;
    startErasure({ config, logger, metrics, onStop } as never, database.query);
    await auth.stores.users.delete(user);
    await until('it is recorded', async () => (await replay()).startsWith('Deleted 0 of 1 users'));
    const named = 'SELECT FROM logs.slow_request WHERE user_id IS NOT NULL';
    await until('the slow requests are erased', async () => (await inLogs(named)).length === 0);
    for (const stop of stops) await stop();
  });

  test('fails with one line if the logs database is not configured', async () => {
    delete process.env['LOGS_DATABASE_URL'];
    await expect(replay()).rejects.toThrow(/^LOGS_DATABASE_URL is not set; /);
    process.env['LOGS_DATABASE_URL'] = logs.url;
  });
});
