import type { Handler } from '@content-platform/chassis';
import type { listUsers as contract } from '@content-platform/contract';
import { toAccount } from '../replies.ts';
import type { UserStore } from '../user-store.ts';

export function listUsers({ users }: { users: UserStore }): Handler<typeof contract> {
  return async ({ query: { search, limit, cursor } }) => {
    const found = await users.list(search, cursor, limit + 1);
    const items = found.slice(0, limit);
    const next = found.length > limit ? String(items.at(-1)!.id) : null;
    return { status: 200, body: { items: items.map(toAccount), next_cursor: next } };
  };
}
