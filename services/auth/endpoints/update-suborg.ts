import { type Handler, HttpError } from '@content-platform/chassis';
import type { updateSuborg as contract } from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import { toProfile, sessionEnded } from '../replies.ts';
import type { AuthContext } from '../context.ts';

/**
 * Lets a user choose a suborg that the identity provider named at the login of this session. This needs no token of the
 * provider, and works while the provider is unavailable. A suborg that the provider withdraws is removed at the next
 * login.
 */
export function updateSuborg({ database }: AuthContext): Handler<typeof contract> {
  return async ({ caller, body: { suborg }, address }) => {
    const user = await database.transaction(async ({ users, sessions, audit }) => {
      const origin = await sessions.originOf(caller.id, Number(caller.sessionId));
      if (!origin?.suborgs.includes(suborg)) {
        throw new HttpError(
          'suborg_not_allowed',
          'The identity service did not list this part of the organisation at your login.',
        );
      }
      const changed = await users.setSuborg(caller.id, suborg);
      await audit.add({ ...byUser(caller.id, address), event: 'suborg_changed', details: { suborg } });
      return changed;
    });
    if (!user) throw sessionEnded();
    return { status: 200, body: { success: true, user: toProfile(user) } };
  };
}
