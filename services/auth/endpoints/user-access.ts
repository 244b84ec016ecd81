import { actorOf, type Handler, HttpError } from '@content-platform/chassis';
import * as contract from '@content-platform/contract';
import { lockUser, removeMfa } from '../administration.ts';
import type { AuthContext } from '../context.ts';
import { cancelIdentityLogins } from '../identity/users.ts';
import { makeRandomCode } from '../passwords/temporary-password.ts';
import { requireRecentLogin } from '../sessions/caller.ts';
import type { Stores } from '../stores.ts';

/** Unlinks an identity and ends all sessions of the user, because an attacker may have opened some through the link. */
export function deleteUserIdentity({ database }: AuthContext): Handler<typeof contract.deleteUserIdentity> {
  return async ({ caller, params: { id, identity_id: identityId }, address }) => {
    await database.transaction(async (stores) => {
      const { users, identities, sessions, audit } = stores;
      await lockUser(users, id);
      const identity = await identities.unlink(id, identityId);
      if (identity === undefined)
        throw new HttpError('not_found', `User ${id} has no identity ${identityId}.`);
      await cancelIdentityLogins(stores, id);
      const by = { userId: id, actor: actorOf(caller), address };
      await audit.add({ ...by, event: 'identity_unlinked', details: { identity } });
      await sessions.endAll(id);
    });
    return { status: 204 };
  };
}

export function deleteUserMfa({ database }: AuthContext): Handler<typeof contract.deleteUserMfa> {
  return async ({ caller, params: { id }, address }) => {
    const removed = await database.transaction(async (stores) => {
      await lockUser(stores.users, id);
      return removeMfa(stores, id, { actor: actorOf(caller), address });
    });
    if (!removed) throw new HttpError('not_found', `User ${id} has no second factor.`);
    return { status: 204 };
  };
}

/** Removes everything with which a thief of the password could log in or stay logged in. */
async function removeAccess(stores: Stores, userId: number) {
  await stores.users.removePassword(userId);
  await stores.passwordResets.cancelOf(userId);
  await stores.identities.unlinkAll(userId);
  await cancelIdentityLogins(stores, userId);
  await stores.sessions.endAll(userId);
}

/** Creates a password for one login, so that an administrator never learns the user's own (ASVS 5.0 6.4.6). */
export function createTemporaryPassword({
  database,
  passwords,
}: AuthContext): Handler<typeof contract.createTemporaryPassword> {
  return async ({ caller, params: { id: userId }, body, address }) => {
    const { schema } = contract.createTemporaryPassword.body;
    const { expires_in: seconds, compromised } = schema.parse(body ?? {});
    const password = makeRandomCode();
    const hash = await passwords.hash(password);
    const expires_at = await database.transaction(async (stores) => {
      const { users, sessions, audit } = stores;
      await lockUser(users, userId);
      // Checked again: the transaction may have waited for another one that ended the caller's sessions.
      await requireRecentLogin(sessions, caller);
      const until = (await users.setTemporaryPassword(userId, hash, seconds)).toISOString();
      const by = { userId, actor: actorOf(caller), address };
      const details = { expires_at: until, ...(compromised && { compromised }) };
      await audit.add({ ...by, event: 'temporary_password_created', details });
      if (compromised) await removeAccess(stores, userId);
      // Another person may have used an earlier temporary password.
      else await sessions.endTemporary(userId);
      return until;
    });
    return { status: 200, body: { temporary_password: password, expires_at } };
  };
}
