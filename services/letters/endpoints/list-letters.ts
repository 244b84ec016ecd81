import { page, type Handler } from '@content-platform/chassis';
import type { listLetters as contract } from '@content-platform/contract';
import type { LetterStore } from '../letter-store.ts';

export function listLetters({ letters }: { letters: LetterStore }): Handler<typeof contract> {
  return async ({ caller, query: { state, limit, cursor } }) => {
    const read = (rows: number) => letters.list(caller.id, state, cursor, rows);
    return { status: 200, body: await page(limit, read) };
  };
}
