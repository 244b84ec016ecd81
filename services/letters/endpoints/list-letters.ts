import type { Handler } from '@content-platform/chassis';
import type { listLetters as contract } from '@content-platform/contract';
import type { LetterStore } from '../letter-store.ts';

export function listLetters({ letters }: { letters: LetterStore }): Handler<typeof contract> {
  return async ({ caller, query: { state, limit, cursor } }) => {
    const found = await letters.list(caller.id, state, cursor, limit + 1);
    const items = found.slice(0, limit);
    const next = found.length > limit ? String(items.at(-1)!.id) : null;
    return { status: 200, body: { items, next_cursor: next } };
  };
}
