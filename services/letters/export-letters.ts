import { jsonArray, rowsOf } from '@content-platform/chassis';
import type { Letter } from '@content-platform/contract';
import type { LetterStore } from './letter-store.ts';

/** Returns a function that lists a user's letters, in parts, because one letter can have thousands of history entries. */
export const exportLetters = (store: LetterStore) => async (userId: number) => {
  const letters = await rowsOf<Letter>((last) => store.list(userId, undefined, last?.id, 100));
  const history = await rowsOf(store.historyOf(userId, 500));

  async function* parts() {
    let entry = await history.next();
    // Both lists have the highest letter id first. Skips the entries of letters that `letters` lacks.
    async function* entriesOf(id: number) {
      for (; !entry.done && entry.value.letter_id >= id; entry = await history.next()) {
        const { letter_id: letterId, ...shown } = entry.value;
        if (letterId === id) yield shown;
      }
    }
    yield* jsonArray(letters, async function* (letter) {
      yield `${JSON.stringify(letter).slice(0, -1)},"history":`;
      yield* jsonArray(entriesOf(letter.id));
      yield '}';
    });
  }
  return parts();
};
