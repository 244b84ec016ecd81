import { actorOf, type Handler } from '@content-platform/chassis';
import type { deleteUserSessions as contract } from '@content-platform/contract';
import { lockUser } from '../administration.ts';
import type { AuthContext } from '../context.ts';
import { requireRecentLogin } from '../sessions/recent-login.ts';

export function deleteUserSessions({ database }: AuthContext): Handler<typeof contract> {
  return async ({ caller, params: { id }, address }) => {
    await requireRecentLogin(database.sessions, caller);
    await database.transaction(async ({ users, sessions, audit }) => {
      await lockUser(users, id);
      const by = { userId: id, actor: actorOf(caller), address };
      await audit.add({ ...by, event: 'session_revoked', details: { session: 'all' } });
      await sessions.endAll(id);
    });
    return { status: 204 };
  };
}
