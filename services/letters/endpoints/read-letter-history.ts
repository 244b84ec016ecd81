import { page, type Handler } from '@content-platform/chassis';
import type { readLetterHistory as contract } from '@content-platform/contract';
import type { LetterStore } from '../letter-store.ts';
import { findReadable } from '../replies.ts';

export function readLetterHistory({ letters }: { letters: LetterStore }): Handler<typeof contract> {
  return async ({ caller, params: { id }, query: { limit, cursor } }) => {
    await findReadable(letters, id, caller);
    return { status: 200, body: await page(limit, (rows) => letters.history(id, cursor, rows)) };
  };
}
