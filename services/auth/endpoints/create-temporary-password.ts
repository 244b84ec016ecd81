import { actorOf, type Handler } from '@content-platform/chassis';
import { createTemporaryPassword as contract } from '@content-platform/contract';
import { lockUser } from '../administration.ts';
import type { AuthContext } from '../context.ts';
import { requireRecentLogin } from '../sessions/recent-login.ts';
import type { Stores } from '../stores.ts';
import { makeRandomCode } from '../passwords/temporary-password.ts';

/** Removes everything with which a thief of the password could log in or stay logged in. */
async function removeAccess(stores: Stores, userId: number) {
  const { users, passwordResets, identities, identityCodes, mfa, sessions } = stores;
  await users.removePassword(userId);
  await passwordResets.cancelOf(userId);
  await identities.unlinkAll(userId);
  await identityCodes.deleteOf(userId);
  await mfa.deleteIdentityLoginsOf(userId);
  await sessions.endAll(userId);
}

/** ASVS 5.0 6.4.6: an administrator starts a password reset but never learns the user's password. */
export function createTemporaryPassword({ database, passwords }: AuthContext): Handler<typeof contract> {
  return async ({ caller, params: { id: userId }, body, address }) => {
    const { expires_in: seconds, compromised } = contract.body.schema.parse(body ?? {});
    await requireRecentLogin(database.sessions, caller);
    const password = makeRandomCode();
    const hash = await passwords.hash(password);
    const expiresAt = await database.transaction(async (stores) => {
      const { users, sessions, audit } = stores;
      await lockUser(users, userId);
      const until = (await users.setTemporaryPassword(userId, hash, seconds)).toISOString();
      const by = { actor: actorOf(caller), address };
      const details = { expires_at: until, ...(compromised && { compromised }) };
      await audit.add({ ...by, event: 'temporary_password_created', userId, details });
      if (compromised) await removeAccess(stores, userId);
      // Another person may have used an earlier temporary password.
      else await sessions.endTemporary(userId);
      return until;
    });
    return { status: 200, body: { temporary_password: password, expires_at: expiresAt } };
  };
}
