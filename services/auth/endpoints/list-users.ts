import { page, type Handler } from '@content-platform/chassis';
import type { listUsers as contract } from '@content-platform/contract';
import type { AuthContext } from '../context.ts';
import { toAccount } from '../replies.ts';

export function listUsers({ database }: AuthContext): Handler<typeof contract> {
  return async ({ query: { search, limit, cursor } }) => {
    const read = (rows: number) => database.users.list(search, cursor, rows);
    return { status: 200, body: await page(limit, read, toAccount) };
  };
}
