import { page, type Handler } from '@content-platform/chassis';
import type { readLetterHistory as contract } from '@content-platform/contract';
import type { LetterStore } from '../letter-store.ts';
import { readableBy } from '../readable-by.ts';
import { noLetter } from '../replies.ts';

export function readLetterHistory({ letters }: { letters: LetterStore }): Handler<typeof contract> {
  return async ({ caller, params: { id }, query: { limit, cursor } }) => {
    if (!(await letters.find(id, readableBy(caller)))) throw noLetter(id);
    return { status: 200, body: await page(limit, (rows) => letters.history(id, cursor, rows)) };
  };
}
