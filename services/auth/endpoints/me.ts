import type { Handler } from '@content-platform/chassis';
import type { me as contract } from '@content-platform/contract';
import type { AuthContext } from '../context.ts';
import { toProfile, sessionEnded } from '../replies.ts';

export function me({ database }: AuthContext): Handler<typeof contract> {
  return async ({ caller }) => {
    const user = await database.users.findById(caller.id);
    if (!user || user.disabled) throw sessionEnded();
    return { status: 200, body: toProfile(user) };
  };
}
