import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import pg from 'pg';
import { serviceOf, type Schema, type ServiceName } from '@content-platform/contract/services';
import { ConfigError, databaseUrl, parsable } from './config.ts';
import { migrateIdempotency } from './idempotency.ts';
import type { Logger } from './logger.ts';
import { migrate, untilAvailable, withClient, type MigrationOptions } from './migrations.ts';
import { migrateLogs } from './slow-log.ts';

interface PrepareOptions extends Pick<MigrationOptions, 'logger' | 'signal'> {
  /** The platform's database with the owner's credentials. */
  platform?: string | undefined;
  /** The logs database with the owner's credentials. */
  logs?: string | undefined;
  /** Any database URL of the service, with its role and password. */
  roleUrl: string;
}

const usualRights = 'SELECT, INSERT, UPDATE, DELETE';

const credentialsOf = (url: string) => {
  const { username, password } = new URL(url);
  return { user: decodeURIComponent(username), password: decodeURIComponent(password) };
};

/** Returns the stored form of a password (RFC 5803), so that the password is in no statement and in no log of the server. */
function scramVerifier(password: string): string {
  const [salt, iterations] = [randomBytes(16), 4_096];
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const keyOf = (name: string) => createHmac('sha256', salted).update(`${name} Key`).digest();
  const stored = createHash('sha256').update(keyOf('Client')).digest('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${stored}:${keyOf('Server').toString('base64')}`;
}

async function canLogIn(url: string): Promise<boolean> {
  return withClient(url, async () => true).catch((error: { code?: string }) => {
    if (error.code?.startsWith('28')) return false;
    throw error;
  });
}

/** Creates the role of the URL, or sets its password if the role cannot log in with it. */
async function ensureRole(owner: pg.Client, url: string): Promise<void> {
  const { user, password } = credentialsOf(url);
  const login = `${pg.escapeIdentifier(user)} LOGIN PASSWORD ${pg.escapeLiteral(scramVerifier(password))}`;
  try {
    const { rowCount } = await owner.query('SELECT FROM pg_roles WHERE rolname = $1', [user]);
    if (rowCount === 0) await owner.query(`CREATE ROLE ${login}`);
    await owner.query(
      `GRANT CONNECT ON DATABASE ${pg.escapeIdentifier(owner.database!)} TO ${pg.escapeIdentifier(user)}`,
    );
    if (!(await canLogIn(url))) await owner.query(`ALTER ROLE ${login}`);
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (code !== '42501') throw error;
    throw new ConfigError(
      `${owner.user} may not create the role ${user} or set its password (${message}): run ALTER ROLE ${owner.user} CREATEROLE and, for an existing role, GRANT ${user} TO ${owner.user} WITH ADMIN OPTION, or create the role as a superuser`,
    );
  }
}

const listTables = `SELECT r.relname AS table, coalesce(parent.relname, r.relname) AS "rightsOf", r.relkind = 'v' AS "isView"
  FROM pg_class AS r LEFT JOIN pg_inherits ON inhrelid = r.oid LEFT JOIN pg_class AS parent ON parent.oid = inhparent
  WHERE r.relnamespace = $1::regnamespace AND r.relkind IN ('r', 'p', 'v')`;

/** Grants the role its rights on each table, view and function of the schema, and revokes all others on tables and views. */
async function grant(owner: pg.Client, schema: Schema, role: string): Promise<void> {
  const { name, rights, functions = [] } = schema;
  const user = pg.escapeIdentifier(role);
  const { rows } = await owner.query<{ table: string; rightsOf: string; isView: boolean }>(listTables, [
    name,
  ]);
  const statements = rows.map(({ table, rightsOf, isView }) => {
    const usual = isView || table.endsWith('migration') ? 'SELECT' : usualRights;
    const allowed = rights?.[rightsOf] ?? usual;
    const target = `${name}.${pg.escapeIdentifier(table)}`;
    return `REVOKE ALL ON ${target} FROM ${user};${allowed && ` GRANT ${allowed} ON ${target} TO ${user};`}`;
  });
  for (const each of functions) statements.push(`GRANT EXECUTE ON FUNCTION ${name}.${each} TO ${user};`);
  // One transaction, so that a running process never lacks a right.
  await owner.query(`BEGIN; GRANT USAGE ON SCHEMA ${name} TO ${user}; ${statements.join(' ')} COMMIT`);
}

async function prepareRole(options: PrepareOptions, url: string, schema: Schema): Promise<void> {
  const { roleUrl } = options;
  const { user } = credentialsOf(roleUrl);
  // An installation may use the owner's role for every service.
  if (user === credentialsOf(url).user) return;
  const loginUrl = new URL(roleUrl);
  loginUrl.pathname = new URL(url).pathname;
  const prepare = async (owner: pg.Client) => {
    // PostgreSQL refuses concurrent changes of one database's or schema's rights. The end of the session unlocks.
    await owner.query(`SELECT pg_advisory_lock(hashtext('content-platform roles'))`);
    await ensureRole(owner, loginUrl.href);
    await grant(owner, schema, user);
  };
  await untilAvailable(options, `the role ${user}`, () => withClient(url, prepare));
}

/** Creates or updates the schema of a service in the platform's database at `url`. */
export async function migrateService(
  name: ServiceName,
  url: string,
  logger: Logger,
  signal?: AbortSignal,
): Promise<void> {
  const { name: schema, idempotency } = serviceOf(name).schema!;
  const common = { url, schema, logger, ...(signal && { signal }) };
  await migrate({ ...common, folder: new URL(`../${name}/migrations/`, import.meta.url) });
  if (idempotency) await migrateIdempotency(common);
}

/**
 * Migrates the databases of a service and creates its role with rights on its own tables. Retries while PostgreSQL is
 * unavailable. Throws ConfigError if it refuses the owner's login or the owner may not create the role.
 */
export async function prepareDatabases(name: ServiceName, options: PrepareOptions): Promise<void> {
  const { platform, logs, roleUrl, logger, signal } = options;
  // The error of `new URL` would show the password, and that of a bare % would not name the URL.
  if (!databaseUrl.and(parsable(credentialsOf, '')).safeParse(roleUrl).success)
    throw new ConfigError(
      `the URL with the role of ${name} must be postgres://user:password@host/database, with special characters percent-encoded`,
    );
  const { schema, readsSlowLog } = serviceOf(name);
  if (schema && platform) {
    await migrateService(name, platform, logger, signal);
    await prepareRole(options, platform, schema);
  }
  if (!logs) return;
  await migrateLogs(logs, logger, signal);
  const slow = readsSlowLog ? 'SELECT, INSERT' : 'INSERT';
  // Only auth adds deleted users and reads them.
  const isAuth = name === 'auth';
  const rights = {
    slow_request: slow,
    slow_query: slow,
    deleted_user: isAuth ? 'SELECT' : '',
    deleted_user_position: isAuth ? 'SELECT, UPDATE' : '',
  };
  const functions = isAuth ? ['erase_users', 'erase_users_in_batches'] : [];
  await prepareRole(options, logs, { name: 'logs', rights, functions });
}
