import { HttpError, type Handler } from '@content-platform/chassis';
import type { readUser as contract } from '@content-platform/contract';
import { toAccount } from '../replies.ts';
import type { UserStore } from '../user-store.ts';

export function readUser({ users }: { users: UserStore }): Handler<typeof contract> {
  return async ({ params: { id } }) => {
    const user = await users.findById(id);
    if (!user) throw new HttpError('not_found', `There is no user ${id}.`);
    return { status: 200, body: toAccount(user) };
  };
}
