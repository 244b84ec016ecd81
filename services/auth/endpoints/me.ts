import type { Handler } from '@content-platform/chassis';
import type { me as contract } from '@content-platform/contract';
import { toProfile, userGone } from '../replies.ts';
import type { UserStore } from '../user-store.ts';

export function me({ users }: { users: UserStore }): Handler<typeof contract> {
  return async ({ caller }) => {
    const user = await users.findById(caller.id);
    if (!user || user.disabled) throw userGone();
    return { status: 200, body: toProfile(user) };
  };
}
