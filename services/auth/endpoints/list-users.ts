import { page, type Handler } from '@content-platform/chassis';
import type { listUsers as contract } from '@content-platform/contract';
import { toAccount } from '../replies.ts';
import type { UserStore } from '../user-store.ts';

export function listUsers({ users }: { users: UserStore }): Handler<typeof contract> {
  return async ({ query: { search, limit, cursor } }) => {
    const read = (rows: number) => users.list(search, cursor, rows);
    return { status: 200, body: await page(limit, read, toAccount) };
  };
}
