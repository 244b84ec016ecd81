import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { createLetterStore } from './letter-store.ts';
import { ensureLetters, openLetters } from './letters.ts';
import { startLetters, type TestLetters } from './testing.ts';

let letters: TestLetters;
beforeAll(async () => {
  letters = await startLetters();
});
afterAll(() => letters.stop());
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

test('letters with ids of their own are made, with their webforms and history; the next has the next id', async () => {
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

test('what is there stays as it is, and what is missing comes', async () => {
  await letters.letter({ title: 'Mine', webforms: [] });
  for (let time = 0; time < 2; time += 1) await ensureLetters(letters.database, wanted);
  expect((await letters.read(1)).letter).toMatchObject({ title: 'Mine', webforms: [] });
  expect(await letters.history(1)).toHaveLength(1);
  expect((await letters.read(3)).letter.title).toBe('Letter 3');
  expect(await letters.history(3)).toHaveLength(1);
});

test('ids that were given already are not given again', async () => {
  for (let n = 0; n < 5; n += 1) await letters.letter();
  await ensureLetters(letters.database, wanted);
  expect(await letters.letter()).toBe(6);
});

test('letters that are made meanwhile have ids of their own', async () => {
  const others = Array.from({ length: 10 }, () => letters.letter());
  await ensureLetters(letters.database, wanted);
  const more = Array.from({ length: 10 }, () => letters.letter());
  const ids = await Promise.all([...others, ...more]);
  expect(new Set(ids).size).toBe(20);
});

test('the schema need not be there', async () => {
  await letters.database.query('test', 'DROP SCHEMA letters CASCADE');
  const database = await openLetters(letters.databaseUrl);
  await ensureLetters(database, wanted);
  expect(await createLetterStore(database.query).list(1, undefined, undefined, 10)).toHaveLength(3);
  await database.close();
});
