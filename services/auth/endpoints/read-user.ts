import { HttpError, type Handler } from '@content-platform/chassis';
import type { readUser as contract } from '@content-platform/contract';
import type { AuthContext } from '../context.ts';
import { toAccount } from '../replies.ts';

export function readUser({ database }: AuthContext): Handler<typeof contract> {
  return async ({ params: { id } }) => {
    const user = await database.users.findById(id);
    if (!user) throw new HttpError('not_found', `There is no user ${id}.`);
    return { status: 200, body: toAccount(user) };
  };
}
