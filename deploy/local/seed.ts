import { ensureClient, ensureUser, openAccounts } from '@content-platform/auth/accounts';
import { ensureLetters, openLetters } from '@content-platform/letters/letters';
import pg from 'pg';
import { CREDENTIALS_FILE, type Credentials } from './content-server/settings.ts';
import { DEMO_CLIENT, DEMO_PASSWORD, DEMO_USERS } from './demo-accounts.ts';
import { demoRecords } from './demo-content.ts';
import { DEMO_LETTERS, DEMO_LETTERS_OF } from './demo-letters.ts';
import { Problem } from './problem.ts';
import { type State, writePrivate } from './state.ts';

/** Loopback, or a socket in a folder. */
const isHere = (host: string): boolean => /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?|\/.*)$/i.test(host);

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
 * @returns what the content server needs, which content-server.json says, too
 */
export async function seed(database: string, state: State): Promise<Credentials> {
  const client = new pg.Client({ connectionString: database, connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  await client.connect();
  try {
    await addRecords(client);
    await admitContentServer(client, state.secrets.contentServerPassword);
  } finally {
    await client.end();
  }
  await addLetters(database, await addAccounts(database));
  const own = new URL(database);
  own.username = 'content_server';
  own.password = state.secrets.contentServerPassword;
  const { name: clientId, secret: clientSecret } = DEMO_CLIENT;
  const credentials: Credentials = { database: own.href, clientId, clientSecret };
  writePrivate(state.path(CREDENTIALS_FILE), credentials);
  return credentials;
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

/** The content-cache service makes the role, with its rights and without a login. */
async function admitContentServer(client: pg.Client, password: string): Promise<void> {
  await client.query(`alter role content_server login password ${pg.escapeLiteral(password)}`);
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
