import { ensureClient, ensureUser, withAccounts } from '@content-platform/auth/accounts';
import { openDatabase, withClient } from '@content-platform/chassis';
import { ensureLetters } from '@content-platform/letters/letters';
import pg from 'pg';
import {
  DEMO_CLIENT,
  DEMO_PASSWORD,
  DEMO_USERS,
  demoRecords,
  DEMO_LETTERS,
  DEMO_USER_EMAIL,
} from './demo-data.ts';
import { Problem } from './problem.ts';

/** Returns whether a host is reachable only from this machine: loopback or a Unix socket. */
export const isLocalHost = (host: string): boolean =>
  /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?|\/.*)$/i.test(host);

/** Demo accounts have public passwords. @throws Problem if the database is not on this machine */
export function refuseRemoteDemoData(databaseUrl: string): void {
  // Checks the host that node-postgres connects to, because URL parameters may override the host of the URL.
  const { host } = new pg.Client({ connectionString: databaseUrl });
  if (!isLocalHost(host))
    throw new Problem(
      `DATABASE_URL names ${host}: npm start adds demo accounts with public passwords, so it accepts only a database on this machine (localhost).`,
    );
}

/** Adds missing demo data to the migrated database of the owner. Keeps existing data, including changed demo data. */
export async function seed(database: string): Promise<void> {
  const addRecords = `insert into content.record (model, id, title, body)
     select model, id, title, body
     from json_to_recordset($1) as demo (model text, id bigint, title text, body jsonb)
     on conflict do nothing`;
  await withClient(database, (client) => client.query(addRecords, [JSON.stringify(demoRecords())]));
  const userId = await addAccounts(database);
  const letters = await openDatabase('letters', database);
  const demoLetters = DEMO_LETTERS.map((letter) => ({ ...letter, userId }));
  await ensureLetters(letters, demoLetters).finally(() => letters.close());
}

/** Enables the login of the role `content_server` and returns its database URL. content-cache creates the role. */
export async function enableContentServerLogin(database: string, password: string): Promise<string> {
  const statement = `alter role content_server login password ${pg.escapeLiteral(password)}`;
  await withClient(database, (client) => client.query(statement));
  const own = new URL(database);
  own.username = 'content_server';
  own.password = password;
  return own.href;
}

/** Adds the missing demo accounts. Returns the ID of the user who owns the demo letters. */
function addAccounts(database: string): Promise<number> {
  return withAccounts(database, async (accounts) => {
    // Sequential, so that each account has the same ID in every new database.
    for (const user of DEMO_USERS) await ensureUser(accounts, { ...user, password: DEMO_PASSWORD });
    await ensureClient(accounts, DEMO_CLIENT);
    return (await accounts.users.findByEmail(DEMO_USER_EMAIL))!.id;
  });
}
