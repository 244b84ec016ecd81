import { beforeEach, expect, test } from '@jest/globals';
import { untilBlocked } from '../../test/support/locks.ts';
import { createLetterStore, eraseLetters } from './letter-store.ts';
import { ensureLetters } from './letters.ts';
import { useLetters } from './testing/letters.ts';

const letters = useLetters();
beforeEach(async () => {
  await letters.database.query('test', 'TRUNCATE letters.letter RESTART IDENTITY CASCADE');
});

const wanted = [1, 2, 3].map((id) => ({
  id,
  userId: 1,
  title: `Letter ${id}`,
  state: 'open' as const,
  webforms: [
    { webform_id: 1, required: true },
    { webform_id: 2, required: false },
  ],
}));

test('creates letters with given ids, webforms and history; the next letter gets the next id', async () => {
  await ensureLetters(letters.database, wanted);
  const { letter } = await letters.read(2);
  const untouched = { skipped: false, skipped_at: null, reason: null };
  expect(letter).toMatchObject({ id: 2, user_id: 1, title: 'Letter 2', state: 'open', version: 1 });
  expect(letter.webforms).toEqual([
    { webform_id: 1, required: true, ...untouched },
    { webform_id: 2, required: false, ...untouched },
  ]);
  const { title, state, webforms } = wanted[1]!;
  expect(await letters.history(2)).toEqual([
    { event: 'created', actor: 'command', details: { title, state, webforms } },
  ]);
  expect(await letters.letter()).toBe(4);
});

test('keeps existing letters and creates missing ones', async () => {
  await letters.letter({ title: 'Mine', webforms: [] });
  for (let time = 0; time < 2; time += 1) await ensureLetters(letters.database, wanted);
  expect((await letters.read(1)).letter).toMatchObject({ title: 'Mine', webforms: [] });
  expect(await letters.history(1)).toHaveLength(1);
  expect((await letters.read(3)).letter.title).toBe('Letter 3');
  expect(await letters.history(3)).toHaveLength(1);
});

test('waits for a letter that is being created, which keeps its id', async () => {
  await ensureLetters(letters.database, wanted);
  const { waiting } = await letters.database.transaction(async (query) => {
    const { userId, title, state, webforms } = wanted[0]!;
    expect(await createLetterStore(query).create({ userId, title, state, webforms }, 'command')).toBe(4);
    const waiting = ensureLetters(letters.database, wanted);
    await untilBlocked(letters.database);
    return { waiting };
  });
  await waiting;
  expect(await letters.letter()).toBe(5);
});

test('erases history and letters of deleted users, and their ids in the history of other letters', async () => {
  const { database, letter, read, update, history } = letters;
  for (let count = 0; count < 45; count += 1) await letter({ userId: 2 + (count % 2) });
  const kept = await letter({ userId: 1 });
  await update(kept, { title: 'Changed by staff' }, (await read(kept)).etag);
  await database.query('no_cascade', 'ALTER TABLE letters.history DROP CONSTRAINT history_letter_id_fkey');
  await eraseLetters(database.query, [2, 3, 9]);
  const left = 'SELECT FROM letters.letter FULL JOIN letters.history ON letter_id = letter.id';
  expect((await database.query('test', left)).rowCount).toBe(2);
  expect(await history(kept)).toMatchObject([
    { event: 'title_changed', actor: 'user' },
    { event: 'created', actor: 'command' },
  ]);
});
