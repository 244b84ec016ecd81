import { actorOf, type Database, type Handler } from '@content-platform/chassis';
import { createTemporaryPassword as contract } from '@content-platform/contract';
import { lockUser } from '../administration.ts';
import { audit } from '../audit.ts';
import type { Passwords } from '../passwords/passwords.ts';
import { createSessionStore } from '../sessions/session-store.ts';
import { makeTemporaryPassword } from '../passwords/temporary-password.ts';
import { createUserStore } from '../user-store.ts';

export interface CreateTemporaryPasswordDeps {
  database: Database;
  passwords: Passwords;
}

/** ASVS 5.0 6.4.6: an administrator lets a person choose another password, and never knows it. */
export function createTemporaryPassword(deps: CreateTemporaryPasswordDeps): Handler<typeof contract> {
  const { database, passwords } = deps;
  return async ({ caller, params: { id }, body, address }) => {
    const { expires_in: seconds } = contract.body.schema.parse(body ?? {});
    const password = makeTemporaryPassword();
    const hash = await passwords.hash(password);
    const expiresAt = await database.transaction(async (query) => {
      await lockUser(query, id);
      const until = await createUserStore(query).setTemporaryPassword(id, hash, seconds);
      const details = { expires_at: until.toISOString() };
      const actor = actorOf(caller);
      await audit(query, { event: 'temporary_password_created', userId: id, actor, address, details });
      // Whoever has logged in with an earlier one may not be the person whom this one is for.
      await createSessionStore(query).endTemporary(id);
      return until;
    });
    return { status: 200, body: { temporary_password: password, expires_at: expiresAt.toISOString() } };
  };
}
