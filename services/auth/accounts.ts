import { migrate, openDatabase } from '@content-platform/chassis';
import type { Role, Scope } from '@content-platform/contract';
import { addClient, addUser, command } from './administration.ts';
import { createPasswords } from './passwords/passwords.ts';
import { createAuthDatabase } from './stores.ts';

export type Accounts = Awaited<ReturnType<typeof openAccounts>>;

/**
 * Opens users and machine clients for commands and demo data, without the service, and migrates its schema first. Throws
 * if the database does not answer.
 */
export async function openAccounts(databaseUrl: string) {
  const folder = new URL('migrations/', import.meta.url);
  const database = await openDatabase('auth', databaseUrl, (url, logger) =>
    migrate({ url, schema: 'auth', folder, logger }),
  );
  return { ...createAuthDatabase(database), passwords: createPasswords(), close: database.close };
}

export interface UserToEnsure {
  email: string;
  name: string;
  password: string;
  roles: readonly Role[];
}

/** Creates the user unless another one has the email. True if it did. */
export async function ensureUser(accounts: Accounts, user: UserToEnsure): Promise<boolean> {
  if (await accounts.users.findByEmail(user.email)) return false;
  const { email, name, roles } = user;
  const passwordHash = await accounts.passwords.hash(user.password);
  const newUser = { email, name, passwordHash, roles: [...roles] };
  return (await accounts.transaction((stores) => addUser(stores, newUser, command))) !== undefined;
}

export interface ClientToEnsure {
  name: string;
  secret: string;
  scopes: readonly Scope[];
}

/** Creates the machine client unless the name is taken. True if it did. */
export async function ensureClient(accounts: Accounts, client: ClientToEnsure): Promise<boolean> {
  const { name, scopes } = client;
  if (await accounts.clients.find(name)) return false;
  const secretHash = await accounts.passwords.hash(client.secret);
  return accounts.transaction((stores) => addClient(stores, { name, secretHash, scopes: [...scopes] }));
}
