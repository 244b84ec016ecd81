import { actorOf, type Handler } from '@content-platform/chassis';
import type { deleteUser as contract } from '@content-platform/contract';
import { lockUser, removeUser } from '../administration.ts';
import type { AuthContext } from '../context.ts';
import { requireRecentLogin } from '../sessions/recent-login.ts';

export function deleteUser({ database }: AuthContext): Handler<typeof contract> {
  return async ({ caller, params: { id }, address }) => {
    await requireRecentLogin(database.sessions, caller);
    await database.transaction(async (stores) => {
      const user = await lockUser(stores.users, id);
      await removeUser(stores, user, { actor: actorOf(caller), address });
    });
    return { status: 204 };
  };
}
