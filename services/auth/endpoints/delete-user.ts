import { actorOf, type Database, type Handler } from '@content-platform/chassis';
import type { deleteUser as contract } from '@content-platform/contract';
import { isAdmin, lockUser, refuseLastAdmin } from '../administration.ts';
import { audit } from '../audit.ts';
import { createSessionStore } from '../sessions/session-store.ts';
import { createUserStore } from '../user-store.ts';

export function deleteUser({ database }: { database: Database }): Handler<typeof contract> {
  return async ({ caller, params: { id }, address }) => {
    await database.transaction(async (query) => {
      const user = await lockUser(query, id);
      if (isAdmin(user)) await refuseLastAdmin(query, id);
      await audit(query, { event: 'user_deleted', userId: id, actor: actorOf(caller), address });
      // Before the sessions go with their user: their access tokens live on, and are to be refused.
      await createSessionStore(query).endAll(id);
      await createUserStore(query).delete(id);
    });
    return { status: 204 };
  };
}
