import { readdirSync } from 'node:fs';
import pg from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { withTimeout } from './concurrency.ts';
import { ConfigError } from './config.ts';
import type { Logger } from './logger.ts';
import { isUnavailable } from './postgres.ts';

export interface MigrationOptions {
  url: string;
  /** The service's schema; created if missing. */
  schema: string;
  /** Folder of `001-name.sql` files. */
  folder: URL;
  /** Table of applied migrations; a second folder in the same schema needs another table. */
  table?: string;
  logger: Logger;
  /** Ends the wait for an unavailable database. */
  signal?: AbortSignal;
}

/** Requests queue behind a wait for a lock. Above deadlock_timeout (1 s), after which the wait ends an autovacuum. */
const lockTimeoutMs = 1_500;
/** Time limit of one statement of a migration. */
const longestStatementMs = 600_000;

/** Returns a lock number for each schema, so that different services do not wait for each other. */
function lockValue(schema: string): number {
  return [...schema].reduce((hash, character) => (hash * 31 + character.codePointAt(0)!) % 2 ** 31, 7);
}

/** Connects to `url` during `work`, with timeouts as startup parameters: a pooler that refuses them ends the start. */
export async function withClient<T>(
  url: string,
  work: (client: pg.Client) => Promise<T>,
  limitMs = 30_000,
): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 2_000,
    // Longer, so that a slow statement ends with the server's error 57014, which is not retried.
    query_timeout: limitMs + 1_000,
    statement_timeout: limitMs,
    lock_timeout: lockTimeoutMs,
    keepAlive: true,
  });
  // The running query reports this error.
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    // After a failed handshake pg waits for the server to close the connection.
    await withTimeout(client.end(), 1_000).catch(() => {});
  }
}

/** Returns whether every migration of the folder was applied. A service's role may read this, but not migrate. */
async function isCurrent({ url, schema, folder, table = 'migration' }: MigrationOptions): Promise<boolean> {
  const names = readdirSync(folder).map((file) => file.replace(/\.sql$/, ''));
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>(`SELECT name FROM ${schema}.${table}`);
    return names.every((name) => rows.some((row) => row.name === name));
  }).catch((error: { code?: string }) => {
    // The table is missing, or this role may not read it.
    if (error.code === '42P01' || error.code === '3F000' || error.code === '42501') return false;
    throw error;
  });
}

/**
 * Repeats `work` while PostgreSQL is unavailable and, with `waitsForOwner`, while this role lacks a right that the
 * owner's migration grants. Throws ConfigError for a wrong login or database, and PostgreSQL's error 57014, because a
 * statement that was cancelled or took too long would do so again.
 */
export async function untilAvailable(
  { logger, signal }: Pick<MigrationOptions, 'logger' | 'signal'>,
  subject: string,
  work: () => Promise<void>,
  waitsForOwner = false,
): Promise<void> {
  for (let pauseMs = 250; ; pauseMs = Math.min(pauseMs * 2, 5_000)) {
    try {
      return await work();
    } catch (error) {
      const { code = '', message: reason } = error as Error & { code?: string };
      // 28: wrong user or password; 3D: no such database. The message is that of PgBouncer.
      if (/^(28|3D)/.test(code) || reason.startsWith('unsupported startup parameter'))
        throw new ConfigError(`PostgreSQL refuses the connection: ${reason}`);
      const isRefused = waitsForOwner && code === '42501';
      if ((!isUnavailable(error) && !isRefused) || code === '57014') throw error;
      const advice = isRefused ? ' (run services/chassis/migrate.ts as its owner)' : '';
      logger.warn({ error }, `${subject} was not prepared${advice}; retrying in ${pauseMs} ms`);
      await sleep(pauseMs, undefined, signal ? { signal } : {});
    }
  }
}

/**
 * Creates or updates a schema, one process at a time. Retries while PostgreSQL is unavailable; a role without the
 * right waits until the owner has migrated (migrate.ts). Throws the errors of `untilAvailable`.
 */
export async function migrate(options: MigrationOptions): Promise<void> {
  const { url, schema, folder, table = 'migration', logger } = options;
  const settings = {
    dir: fileURLToPath(folder),
    direction: 'up',
    schema,
    createSchema: true,
    migrationsTable: table,
    advisoryLockMode: 'wait',
    lockValue: lockValue(schema),
    log: (message: string) => logger.debug(message),
  } as const;
  const work = async () => {
    if (await isCurrent(options)) return;
    // Loaded when needed, because most starts do not migrate.
    const { runner } = await import('node-pg-migrate');
    await withClient(url, (dbClient) => runner({ dbClient, ...settings }), longestStatementMs);
  };
  await untilAvailable(options, `the schema ${schema}`, work, true);
}
