import { type Database, type Handler, HttpError } from '@content-platform/chassis';
import type { updateSuborg as contract } from '@content-platform/contract';
import { audit } from '../audit.ts';
import { toProfile, userGone } from '../replies.ts';
import { createSessionStore } from '../sessions/session-store.ts';
import { createUserStore } from '../user-store.ts';

/**
 * What somebody may choose from is what the identity service said at the login of this session: that needs no access
 * token of theirs to be kept, and works while the identity service is away. What it takes away is gone at the next login.
 */
export function updateSuborg({ database }: { database: Database }): Handler<typeof contract> {
  return async ({ caller, body: { suborg }, address }) => {
    const user = await database.transaction(async (query) => {
      const origin = await createSessionStore(query).originOf(caller.id, Number(caller.sessionId));
      if (!origin?.suborgs.includes(suborg)) {
        throw new HttpError(403, 'suborg_not_allowed', 'The identity service did not name it at your login.');
      }
      const changed = await createUserStore(query).setSuborg(caller.id, suborg);
      const actor = `user:${caller.id}`;
      await audit(query, { event: 'suborg_changed', userId: caller.id, actor, address, details: { suborg } });
      return changed;
    });
    if (!user) throw userGone();
    return { status: 200, body: { success: true, user: toProfile(user) } };
  };
}
