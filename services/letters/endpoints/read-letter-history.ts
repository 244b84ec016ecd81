import { page, type Handler, type Logger } from '@content-platform/chassis';
import type { readLetterHistory as contract } from '@content-platform/contract';
import type { LetterStore } from '../letter-store.ts';
import { findReadable } from '../replies.ts';

export function readLetterHistory(deps: { letters: LetterStore; logger: Logger }): Handler<typeof contract> {
  return async ({ caller, params: { id }, query: { limit, cursor } }) => {
    await findReadable(deps, id, caller);
    return { status: 200, body: await page(limit, (rows) => deps.letters.history(id, cursor, rows)) };
  };
}
