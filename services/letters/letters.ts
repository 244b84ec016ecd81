import type { Database } from '@content-platform/chassis';
import { createLetterStore, type NewLetter } from './letter-store.ts';

/** The actor of a command in the history. */
export const commandActor = 'command';

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
