import { runner } from 'node-pg-migrate';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isAway } from './away.ts';
import { ConfigError } from './config.ts';
import type { Logger } from './logger.ts';

export interface MigrationOptions {
  url: string;
  /** The service's own schema; it is made when missing. */
  schema: string;
  /** Folder of `001-name.sql` files. */
  folder: URL;
  /** Where it is noted what has been done; a second folder in the same schema needs one of its own. */
  table?: string;
  logger: Logger;
  /** Ends the waiting for a database that is away. */
  signal?: AbortSignal;
}

/** How long the advisory lock is waited for before that is said in the log. */
const lockTimeoutMs = 30_000;

/** A lock per schema, so that services that start together don't wait for each other. */
function lockValue(schema: string): number {
  return [...schema].reduce((hash, character) => (hash * 31 + character.codePointAt(0)!) % 2 ** 31, 7);
}

/**
 * Brings a schema up to date, under an advisory lock so that several processes may start at once. While PostgreSQL is
 * away it is tried again. Throws ConfigError when the login or the database is refused.
 */
export async function migrate(options: MigrationOptions): Promise<void> {
  const { url, schema, folder, table = 'migration', logger, signal } = options;
  for (let pause = 250; ; pause = Math.min(pause * 2, 5_000)) {
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
      // 55P03: another process has migrated for longer than lockTimeoutMs; it is waited for.
      if (!isAway(error) && code !== '55P03') throw error;
      logger.warn({ error }, `the schema ${schema} cannot be migrated yet; trying again in ${pause} ms`);
      await sleep(pause, undefined, signal ? { signal } : {});
    }
  }
}
