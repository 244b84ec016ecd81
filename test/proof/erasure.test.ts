import { beforeAll, expect, jest, test } from '@jest/globals';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { tokenOf } from '../support/accounts.ts';
import { admin } from '../support/admin.ts';
import { withDatabase } from '../support/connections.ts';
import { scrape } from '../support/metrics.ts';
import { startOwnStack } from '../support/own-stack.ts';
import { deleteAccount, newPerson, type Person, placesWith, storedFiles } from '../support/personal-data.ts';
import { database } from '../support/records.ts';
import { isStackReady, stack } from '../support/stack.ts';
import { useStarted } from '../support/use-started.ts';
import { until } from '../support/wait.ts';

/** These tests start their own stack, because they search and stop all of it. In it, every request is slow. */
jest.setTimeout(300_000);
const own = useStarted(() => {
  process.env['SLOW_REQUEST_MS'] = '1';
  return startOwnStack();
}, 300_000);
let media: string;
beforeAll(() => void (media = join(own.folder, 'media')));

const lists = ['auth.deleted_user', 'logs.deleted_user'];
const places = (person: Person) => placesWith(person, media);
const untilErased = (person: Person, left = lists, limitMs = 90_000) =>
  until(
    `only ${left} have traces of the person`,
    async () => {
      expect(await places(person)).toEqual(left);
      return true;
    },
    limitMs,
  );
const untilReadyAgain = () => until('every service is ready', () => isStackReady());
const kill = (names: string[]) => names.forEach((name) => process.kill(own.pidOf(name), 'SIGKILL'));

/** Returns the tables with a column for a user. */
async function tablesOfUsers(): Promise<string[]> {
  const text = `SELECT table_schema || '.' || table_name AS name FROM information_schema.columns
                JOIN information_schema.tables USING (table_schema, table_name)
                WHERE column_name = 'user_id' AND table_type = 'BASE TABLE'`;
  return (await database().query<{ name: string }>(text)).rows.map(({ name }) => name);
}

test('only the lists of deleted users have traces of a deleted person, although each service crashes', async () => {
  const before = storedFiles(media);
  const person = await newPerson();
  const found = await until('slow requests were logged', async () => {
    const all = await places(person);
    return all.includes('logs.slow_request') && all;
  });
  // A table that is missing here is not tested: let newPerson write to it. Uploads in progress are tested in media-upload.
  const tables = await tablesOfUsers();
  expect(found).toEqual(expect.arrayContaining(tables.filter((name) => name !== 'media.pending_object')));
  expect(storedFiles(media).length).toBeGreaterThan(before.length);
  await deleteAccount(person);
  kill(['auth', ...contract.services.filter(({ erasesUsers }) => erasesUsers).map(({ name }) => name)]);
  await untilErased(person);
  expect(storedFiles(media)).toEqual(before);
  expect(await admin('verify-audit')).toContain('The newest link');
});

test('if one service is stopped, the others erase the person, and the metric names the stopped service', async () => {
  await untilReadyAgain();
  const person = await newPerson();
  process.kill(own.pidOf('letters'), 'SIGSTOP');
  try {
    const token = await tokenOf(stack().gateway, 'admin');
    const { status } = await call(stack().gateway, contract.deleteUser, { params: { id: person.id }, token });
    expect(status).toBe(204);
    const ofLetters = ['letters.history', 'letters.idempotency_key', 'letters.letter', 'letters.webform'];
    await untilErased(person, [...lists, ...ofLetters].toSorted());
    await database().query(`UPDATE auth.deleted_user SET deleted_at = now() - interval '2 hours'`);
    await until('the alert would fire for letters alone', async () => {
      const lags = [...(await scrape('auth'))].filter(([name]) => name.startsWith('erasure_lag_seconds'));
      expect(lags.length).toBeGreaterThan(5);
      const behind = lags.filter(([, seconds]) => seconds > 3_600).map(([name]) => name);
      expect(behind).toEqual(['erasure_lag_seconds{service="letters"}']);
      return true;
    });
  } finally {
    process.kill(own.pidOf('letters'), 'SIGCONT');
  }
  await untilErased(person);
});

/** Runs statements on the server while nothing is connected to the platform's database. */
function exclusively(...statements: string[]): Promise<void> {
  const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'platform'`;
  return withDatabase(stack().logs, async (client) => {
    try {
      for (const statement of ['ALTER DATABASE platform ALLOW_CONNECTIONS false', end, ...statements])
        await client.query(statement);
    } finally {
      await client.query('ALTER DATABASE platform ALLOW_CONNECTIONS true');
    }
  });
}

test('replay-deletions deletes a person again who came back with a backup', async () => {
  await untilReadyAgain();
  const files = storedFiles(media);
  const [person, kept] = [await newPerson(), await newPerson()];
  const backup = join(own.folder, 'backup');
  await exclusively('CREATE DATABASE backup TEMPLATE platform');
  cpSync(media, backup, { recursive: true });
  await untilReadyAgain();
  await deleteAccount(person);
  await untilErased(person);
  await exclusively('ALTER DATABASE platform RENAME TO old', 'ALTER DATABASE backup RENAME TO platform');
  cpSync(backup, media, { recursive: true });
  rmSync(backup, { recursive: true });
  await untilReadyAgain();
  expect(await places(person)).toEqual(expect.arrayContaining(['auth.user', 'letters.letter', 'media.file']));
  expect(await admin('replay-deletions')).toBe('The services erase their data within a minute.');
  await untilErased(person);
  expect(await places(kept)).toEqual(expect.arrayContaining(['auth.user', 'letters.letter', 'media.file']));
  await deleteAccount(kept);
  await untilErased(kept);
  expect(storedFiles(media)).toEqual(files);
});
