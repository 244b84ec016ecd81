import { runner } from 'node-pg-migrate';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isUnavailable } from './database-errors.ts';
import { ConfigError } from './config.ts';
import type { Logger } from './logger.ts';

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

/** Time until a warning that the advisory lock is still held by another process. */
const lockTimeoutMs = 30_000;

/** Returns a lock number for each schema, so that different services do not wait for each other. */
function lockValue(schema: string): number {
  return [...schema].reduce((hash, character) => (hash * 31 + character.codePointAt(0)!) % 2 ** 31, 7);
}

/**
 * Creates or updates a schema, under an advisory lock so that several processes may start at once. Retries while
 * PostgreSQL is unavailable. Throws ConfigError if PostgreSQL refuses the login or the database.
 */
export async function migrate(options: MigrationOptions): Promise<void> {
  const { url, schema, folder, table = 'migration', logger, signal } = options;
  for (let pauseMs = 250; ; pauseMs = Math.min(pauseMs * 2, 5_000)) {
    try {
      await runner({
        databaseUrl: { connectionString: url, connectionTimeoutMillis: 2_000, lock_timeout: lockTimeoutMs },
        dir: fileURLToPath(folder),
        direction: 'up',
        schema,
        createSchema: true,
        migrationsTable: table,
        advisoryLockMode: 'wait',
        lockValue: lockValue(schema),
        log: (message) => logger.debug(message),
      });
      return;
    } catch (error) {
      const { code = '', message } = error as Error & { code?: string };
      // 28: wrong user or password; 3D: no such database.
      if (/^(28|3D)/.test(code)) throw new ConfigError(`PostgreSQL refuses the login: ${message}`);
      // 55P03: another process has been migrating for longer than lockTimeoutMs.
      if (!isUnavailable(error) && code !== '55P03') throw error;
      logger.warn({ error }, `the schema ${schema} cannot be migrated yet; trying again in ${pauseMs} ms`);
      await sleep(pauseMs, undefined, signal ? { signal } : {});
    }
  }
}
