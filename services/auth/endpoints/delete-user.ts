import { actorOf, type Handler } from '@content-platform/chassis';
import type { deleteUser as contract } from '@content-platform/contract';
import { isAdmin, lockUser, refuseLastAdmin } from '../administration.ts';
import type { AuthContext } from '../context.ts';
import { requireRecentLogin } from '../sessions/recent-login.ts';

export function deleteUser({ database }: AuthContext): Handler<typeof contract> {
  return async ({ caller, params: { id }, address }) => {
    await requireRecentLogin(database.sessions, caller);
    await database.transaction(async ({ users, sessions, audit }) => {
      const user = await lockUser(users, id);
      if (isAdmin(user)) await refuseLastAdmin(users, id);
      await audit.add({ event: 'user_deleted', userId: id, actor: actorOf(caller), address });
      // Before the user is deleted: their access tokens remain valid, so they must be revoked.
      await sessions.endAll(id);
      await users.delete(id);
    });
    return { status: 204 };
  };
}
