import { openDatabase } from '@content-platform/chassis';
import { addUser, byCommand } from './administration.ts';
import type { NewClient } from './client-store.ts';
import { createPasswords, type Passwords } from './passwords/passwords.ts';
import { type AuthDatabase, createAuthDatabase } from './stores.ts';
import type { NewUser, User } from './user-store.ts';

export interface Accounts extends AuthDatabase {
  passwords: Passwords;
}

/** Migrates the schema and opens auth's stores during `work`. Throws if the database is unavailable. */
export async function withAccounts<T>(databaseUrl: string, work: (accounts: Accounts) => Promise<T>) {
  const database = await openDatabase('auth', databaseUrl);
  const accounts = { ...createAuthDatabase(database), passwords: createPasswords() };
  return work(accounts).finally(database.close);
}

/** Creates the user; returns undefined if another user has the email. */
export async function ensureUser(
  accounts: Accounts,
  { password, ...user }: Omit<NewUser, 'passwordHash'> & { password: string },
): Promise<User | undefined> {
  if (await accounts.users.findByEmail(user.email)) return undefined;
  const passwordHash = await accounts.passwords.hash(password);
  return accounts.transaction((stores) => addUser(stores, { ...user, passwordHash }, byCommand));
}

/** Creates the machine client and returns true; returns false if the name is taken. */
export async function ensureClient(
  accounts: Accounts,
  { secret, ...client }: Omit<NewClient, 'secretHash'> & { secret: string },
): Promise<boolean> {
  if (await accounts.clients.find(client.name)) return false;
  const secretHash = await accounts.passwords.hash(secret);
  return accounts.transaction(async ({ clients, audit }) => {
    const isNew = await clients.create({ ...client, secretHash });
    const details = { client: client.name, scopes: client.scopes };
    if (isNew) await audit.add({ ...byCommand, event: 'client_created', details });
    return isNew;
  });
}
