import type { LetterState } from '@content-platform/contract';
import { database } from './records.ts';

interface NewLetter {
  userId: number;
  state?: LetterState;
  /** Webform ids; the first is required. */
  webforms?: readonly number[];
}

/** Creates a letter, as `npm run admin -- create-letter` does, and returns its id. Call `closeRecords` afterwards. */
export async function newLetter({
  userId,
  state = 'open',
  webforms = [1, 2, 3],
}: NewLetter): Promise<number> {
  const { rows } = await database().query<{ id: string }>(
    `WITH made AS (INSERT INTO letters.letter (user_id, title, state) VALUES ($1, 'A letter', $2) RETURNING id),
       forms AS (INSERT INTO letters.webform (letter_id, webform_id, required)
                 SELECT id, webform_id, n = 1 FROM made, unnest($3::bigint[]) WITH ORDINALITY AS form (webform_id, n))
     INSERT INTO letters.history (letter_id, at, event, actor, details)
     SELECT id, now(), 'created', 'command', '{}' FROM made RETURNING letter_id AS id`,
    [userId, state, webforms],
  );
  return Number(rows[0]!.id);
}
