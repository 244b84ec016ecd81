import { migrateService, openDatabase, type Database, type Logger } from '@content-platform/chassis';
import { createLetterStore, type NewLetter } from './letter-store.ts';

/** The actor of a command in the history. */
export const commandActor = 'command';

export const migrateLetters = (url: string, logger: Logger) => migrateService('letters', url, logger);

/** Opens the database for commands and demo data. Throws if it is unavailable or refuses the login. */
export const openLetters = (databaseUrl: string): Promise<Database> =>
  openDatabase('letters', databaseUrl, migrateLetters);

/** Creates the letters whose ids are free; existing letters stay unchanged. */
export async function ensureLetters(database: Database, letters: readonly (NewLetter & { id: number })[]) {
  await database.transaction(async (query) => {
    // With this lock no other transaction holds an uncommitted id, so that the next id follows the largest.
    await query('lock_letters', 'LOCK TABLE letters.letter IN SHARE ROW EXCLUSIVE MODE');
    for (const letter of letters) await createLetterStore(query).create(letter, commandActor, letter.id);
    const next = `SELECT setval(pg_get_serial_sequence('letters.letter', 'id'), max(id)) FROM letters.letter`;
    await query('move_letter_ids', next);
  });
}
