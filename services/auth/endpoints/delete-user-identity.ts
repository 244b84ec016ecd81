import { actorOf, type Handler, HttpError } from '@content-platform/chassis';
import type { deleteUserIdentity as contract } from '@content-platform/contract';
import { lockUser } from '../administration.ts';
import type { AuthContext } from '../context.ts';
import { requireRecentLogin } from '../sessions/recent-login.ts';

/** Unlinks an identity and ends all sessions of the user, because an attacker may have opened some through the link. */
export function deleteUserIdentity({ database }: AuthContext): Handler<typeof contract> {
  return async ({ caller, params: { id, identity_id: identityId }, address }) => {
    await requireRecentLogin(database.sessions, caller);
    await database.transaction(async ({ users, identities, identityCodes, mfa, sessions, audit }) => {
      await lockUser(users, id);
      const issuer = await identities.unlink(id, identityId);
      if (issuer === undefined) throw new HttpError('not_found', `User ${id} has no identity ${identityId}.`);
      await identityCodes.deleteOf(id);
      await mfa.deleteIdentityLoginsOf(id);
      const by = { userId: id, actor: actorOf(caller), address };
      await audit.add({ ...by, event: 'identity_unlinked', details: { identity: issuer } });
      await sessions.endAll(id);
    });
    return { status: 204 };
  };
}
