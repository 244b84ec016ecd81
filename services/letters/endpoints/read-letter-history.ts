import { page, type Handler } from '@content-platform/chassis';
import type { readLetterHistory as contract } from '@content-platform/contract';
import { findReadable, type ReadDeps } from '../replies.ts';

export function readLetterHistory(deps: ReadDeps): Handler<typeof contract> {
  return async ({ caller, address, params: { id }, query: { limit, cursor } }) => {
    await findReadable(deps, id, { caller, address });
    return { status: 200, body: await page(limit, (rows) => deps.letters.history(id, cursor, rows)) };
  };
}
