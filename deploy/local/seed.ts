import { ensureClient, ensureUser, openAccounts } from '@content-platform/auth/accounts';
import { ensureLetters, openLetters } from '@content-platform/letters/letters';
import pg from 'pg';
import { withClient } from './databases.ts';
import { DEMO_CLIENT, DEMO_PASSWORD, DEMO_USERS } from './demo-accounts.ts';
import { demoRecords } from './demo-content.ts';
import { DEMO_LETTERS, DEMO_LETTERS_OF } from './demo-letters.ts';
import { Problem } from './problem.ts';

/** Whether an address can be reached from this machine alone: loopback, or a socket in a folder. */
export const isHere = (host: string): boolean => /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?|\/.*)$/i.test(host);

/**
 * Demo accounts have public passwords: they are for a database that others cannot reach.
 * @param databaseUrl the database that the user has named
 * @throws Problem when it is not on this machine
 */
export function refuseDemoDataElsewhere(databaseUrl: string): void {
  // What node-postgres will connect to: parameters of the address may name another host than its beginning.
  const { host } = new pg.Client({ connectionString: databaseUrl });
  if (!isHere(host))
    throw new Problem(
      `DATABASE_URL names ${host}: npm start adds demo accounts with public passwords, so it only takes a database on this machine (localhost).`,
    );
}

/**
 * Adds the demo data that is missing; what is there stays as it is, however it was changed since.
 * @param database the owner's address of the platform's database, migrated by the services
 */
export async function seed(database: string): Promise<void> {
  await withClient(database, addRecords);
  await addLetters(database, await addAccounts(database));
}

/**
 * Lets the role `content_server` log in: the content-cache service makes it with its rights and without a login.
 * @returns its address of the database
 */
export async function admitContentServer(database: string, password: string): Promise<string> {
  const statement = `alter role content_server login password ${pg.escapeLiteral(password)}`;
  await withClient(database, (client) => client.query(statement));
  const own = new URL(database);
  own.username = 'content_server';
  own.password = password;
  return own.href;
}

async function addRecords(client: pg.Client): Promise<void> {
  await client.query(
    `insert into content.record (model, id, title, body)
     select model, id, title, body
     from json_to_recordset($1) as demo (model text, id bigint, title text, body jsonb)
     on conflict do nothing`,
    [JSON.stringify(demoRecords())],
  );
}

/** Returns the id of the user whom the demo's letters are for. */
async function addAccounts(database: string): Promise<number> {
  const accounts = await openAccounts(database);
  try {
    // One after the other: each has the same id in every new database.
    for (const user of DEMO_USERS) await ensureUser(accounts, { ...user, password: DEMO_PASSWORD });
    await ensureClient(accounts, DEMO_CLIENT);
    return (await accounts.users.findByEmail(DEMO_LETTERS_OF))!.id;
  } finally {
    await accounts.close();
  }
}

async function addLetters(database: string, userId: number): Promise<void> {
  const letters = await openLetters(database);
  try {
    await ensureLetters(
      letters,
      DEMO_LETTERS.map((letter) => ({ ...letter, userId })),
    );
  } finally {
    await letters.close();
  }
}
