import type { Handler } from '@content-platform/chassis';
import type { readUser as contract } from '@content-platform/contract';
import { findUser } from '../administration.ts';
import type { AuthContext } from '../context.ts';
import { toAccount, toIdentity } from '../replies.ts';

export function readUser({ database }: AuthContext): Handler<typeof contract> {
  return async ({ params: { id } }) => {
    const user = await findUser(database.users, id);
    const identities = (await database.identities.list(id)).map(toIdentity);
    return { status: 200, body: { ...toAccount(user), mfa_enabled: user.hasMfa, identities } };
  };
}
