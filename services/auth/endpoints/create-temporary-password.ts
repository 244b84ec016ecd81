import { actorOf, type Handler } from '@content-platform/chassis';
import { createTemporaryPassword as contract } from '@content-platform/contract';
import { lockUser } from '../administration.ts';
import type { AuthContext } from '../context.ts';
import { makeTemporaryPassword } from '../passwords/temporary-password.ts';

/** ASVS 5.0 6.4.6: an administrator starts a password reset but never learns the user's password. */
export function createTemporaryPassword({ database, passwords }: AuthContext): Handler<typeof contract> {
  return async ({ caller, params: { id: userId }, body, address }) => {
    const { expires_in: seconds } = contract.body.schema.parse(body ?? {});
    const password = makeTemporaryPassword();
    const hash = await passwords.hash(password);
    const expiresAt = await database.transaction(async ({ users, sessions, audit }) => {
      await lockUser(users, userId);
      const until = (await users.setTemporaryPassword(userId, hash, seconds)).toISOString();
      const by = { actor: actorOf(caller), address };
      const details = { expires_at: until };
      await audit.add({ ...by, event: 'temporary_password_created', userId, details });
      // Another person may have used an earlier temporary password.
      await sessions.endTemporary(userId);
      return until;
    });
    return { status: 200, body: { temporary_password: password, expires_at: expiresAt } };
  };
}
