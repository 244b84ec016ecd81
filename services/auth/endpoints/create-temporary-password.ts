import { actorOf, type Handler } from '@content-platform/chassis';
import { createTemporaryPassword as contract } from '@content-platform/contract';
import { lockUser } from '../administration.ts';
import type { Passwords } from '../passwords/passwords.ts';
import { makeTemporaryPassword } from '../passwords/temporary-password.ts';
import type { AuthDatabase } from '../stores.ts';

export interface CreateTemporaryPasswordDeps {
  database: AuthDatabase;
  passwords: Passwords;
}

/** ASVS 5.0 6.4.6: an administrator lets a user choose another password, and never knows it. */
export function createTemporaryPassword(deps: CreateTemporaryPasswordDeps): Handler<typeof contract> {
  const { database, passwords } = deps;
  return async ({ caller, params: { id }, body, address }) => {
    const { expires_in: seconds } = contract.body.schema.parse(body ?? {});
    const password = makeTemporaryPassword();
    const hash = await passwords.hash(password);
    const expiresAt = await database.transaction(async ({ users, sessions, audit }) => {
      await lockUser(users, id);
      const until = (await users.setTemporaryPassword(id, hash, seconds)).toISOString();
      const by = { actor: actorOf(caller), address };
      const details = { expires_at: until };
      await audit.add({ ...by, event: 'temporary_password_created', userId: id, details });
      // An earlier temporary password may have been used by somebody else.
      await sessions.endTemporary(id);
      return until;
    });
    return { status: 200, body: { temporary_password: password, expires_at: expiresAt } };
  };
}
