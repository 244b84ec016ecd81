import { actorOf, type Handler, HttpError } from '@content-platform/chassis';
import type { deleteUserMfa as contract } from '@content-platform/contract';
import { lockUser, removeMfa } from '../administration.ts';
import type { AuthContext } from '../context.ts';
import { requireRecentLogin } from '../sessions/recent-login.ts';

export function deleteUserMfa({ database }: AuthContext): Handler<typeof contract> {
  return async ({ caller, params: { id }, address }) => {
    await requireRecentLogin(database.sessions, caller);
    const removed = await database.transaction(async (stores) => {
      await lockUser(stores.users, id);
      return removeMfa(stores, id, { actor: actorOf(caller), address });
    });
    if (!removed) throw new HttpError('not_found', `User ${id} has no second factor.`);
    return { status: 204 };
  };
}
