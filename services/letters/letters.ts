import {
  createDatabase,
  createLogger,
  createMetrics,
  createSlowLog,
  type Database,
} from '@content-platform/chassis';
import { createLetterStore, type NewLetter } from './letter-store.ts';
import { migrateLetters } from './schema.ts';

/** How the history names who typed a command. */
export const command = 'command';

/**
 * The database for commands and for demo data, without the service: its schema is made or brought up to date first.
 * Throws when the database does not answer or refuses.
 */
export async function openLetters(databaseUrl: string): Promise<Database> {
  const logger = createLogger('letters', 'warn', process.stderr);
  const metrics = createMetrics('letters');
  const slowLog = createSlowLog(undefined, metrics, logger);
  const database = createDatabase({ url: databaseUrl, logger, metrics, slowLog, slowQueryMs: 60_000 });
  try {
    // The migration waits for a database that is away; whoever types a command would rather know.
    await database.ping();
    await migrateLetters(databaseUrl, logger);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Makes the letters whose ids are free; what is there stays as it is, however it was changed since. */
export async function ensureLetters(
  database: Database,
  letters: readonly (NewLetter & { id: number })[],
): Promise<void> {
  await database.transaction(async (query) => {
    // Whoever makes a letter now has committed it, or has no id yet: the next id is the one after the greatest.
    await query('lock_letters', 'LOCK TABLE letters.letter IN SHARE ROW EXCLUSIVE MODE');
    for (const letter of letters) await createLetterStore(query).create(letter, command, letter.id);
    const next = `SELECT setval(pg_get_serial_sequence('letters.letter', 'id'), max(id)) FROM letters.letter`;
    await query('move_letter_ids', next);
  });
}
