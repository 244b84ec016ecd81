import {
  createDatabase,
  createLogger,
  createMetrics,
  createSlowLog,
  migrate,
} from '@content-platform/chassis';
import type { Role, Scope } from '@content-platform/contract';
import { addClient, addUser, command } from './administration.ts';
import { createClientStore } from './client-store.ts';
import { createPasswords } from './passwords/passwords.ts';
import { createUserStore } from './user-store.ts';

export type Accounts = Awaited<ReturnType<typeof openAccounts>>;

/**
 * Users and machine clients for commands and for demo data, without the service: its schema is made or brought up to
 * date first. Throws when the database does not answer or refuses.
 */
export async function openAccounts(databaseUrl: string) {
  const logger = createLogger('auth', 'warn', process.stderr);
  const metrics = createMetrics('auth');
  const slowLog = createSlowLog(undefined, metrics, logger);
  const database = createDatabase({ url: databaseUrl, logger, metrics, slowLog, slowQueryMs: 60_000 });
  try {
    // The migration waits for a database that is away; whoever types a command would rather know.
    await database.ping();
    const folder = new URL('migrations/', import.meta.url);
    await migrate({ url: databaseUrl, schema: 'auth', folder, logger });
  } catch (error) {
    await database.close();
    throw error;
  }
  return {
    users: createUserStore(database.query),
    clients: createClientStore(database.query),
    passwords: createPasswords(),
    transaction: database.transaction,
    close: database.close,
  };
}

export interface UserToEnsure {
  email: string;
  name: string;
  password: string;
  roles: readonly Role[];
}

/** Makes the user unless the address is taken, which leaves what is there as it is. True when it was made. */
export async function ensureUser(accounts: Accounts, user: UserToEnsure): Promise<boolean> {
  const { users, passwords, transaction } = accounts;
  if (await users.findByEmail(user.email)) return false;
  const { email, name, roles } = user;
  const passwordHash = await passwords.hash(user.password);
  const made = { email, name, passwordHash, roles: [...roles] };
  return (await transaction((query) => addUser(query, made, command))) !== undefined;
}

export interface ClientToEnsure {
  name: string;
  secret: string;
  scopes: readonly Scope[];
}

/** Makes the machine client unless the name is taken, which leaves what is there as it is. True when it was made. */
export async function ensureClient(accounts: Accounts, client: ClientToEnsure): Promise<boolean> {
  const { clients, passwords, transaction } = accounts;
  const { name, scopes } = client;
  if (await clients.find(name)) return false;
  const secretHash = await passwords.hash(client.secret);
  return transaction((query) => addClient(query, { name, secretHash, scopes: [...scopes] }, command));
}
