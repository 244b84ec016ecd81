import { type Caller, type Database, type Handler, HttpError } from '@content-platform/chassis';
import type { changePassword as contract } from '@content-platform/contract';
import { audit } from '../audit.ts';
import type { Guesses } from '../guessing/guesses.ts';
import type { PasswordPolicy } from '../passwords/password-policy.ts';
import type { Passwords } from '../passwords/passwords.ts';
import { createSessionStore } from '../sessions/session-store.ts';
import { recognise } from '../passwords/temporary-password.ts';
import { createUserStore, type User, type UserStore } from '../user-store.ts';

export interface ChangePasswordDeps {
  database: Database;
  users: UserStore;
  passwords: Passwords;
  policy: PasswordPolicy;
  guesses: Guesses;
}

type Person = Extract<Caller, { kind: 'user' }>;
type Complaint = { path: 'body.current_password' | 'body.new_password'; message: string };

function refused(...complaints: Complaint[]): HttpError<'validation_failed'> {
  return new HttpError(422, 'validation_failed', 'The password was not changed.', complaints);
}

function ended(): HttpError<'invalid_token'> {
  return new HttpError(401, 'invalid_token', 'The session of this access token has ended.', undefined, {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
  });
}

const wrong: Complaint = { path: 'body.current_password', message: 'Is not the current password.' };

/**
 * ASVS 5.0 6.2.2 and 6.2.3; 7.4.3: all sessions end. Who logged in with a temporary password may give that one for the
 * current one as long as the session lasts, but not keep it (6.4.1).
 */
export function changePassword(deps: ChangePasswordDeps): Handler<typeof contract> {
  const { database, users, passwords, policy, guesses } = deps;
  const { isKnownNetwork } = createSessionStore(database.query);

  /** Whoever has stolen a token can guess here, too. Throws 429 after too many failures. */
  async function isCurrent(user: User, caller: Person, password: string, address: string) {
    const { account } = await users.lookUp(user.email);
    const isKnown = (network: string) => isKnownNetwork(user.id, network);
    const { result: kind, limited } = await guesses.guard({ account, address, isKnown }, async () => {
      const found = await recognise(passwords, user, password);
      return found === 'temporary' && !caller.mustChangePassword ? undefined : found;
    });
    if (kind === undefined) {
      const details = { reason: 'wrong password', session: Number(caller.sessionId) };
      const entry = { userId: user.id, actor: `user:${user.id}`, address, details };
      await audit(database.query, { event: 'password_change_failed', ...entry });
    }
    if (limited) throw limited;
    return kind !== undefined;
  }

  async function complaintsOf(user: User, current: boolean, password: string): Promise<Complaint[]> {
    const path = 'body.new_password';
    const weakness = policy.complaint(password, user);
    const complaints = weakness === undefined ? [] : [{ path, message: weakness } as const];
    if (!current) return [wrong, ...complaints];
    // Whether it is the current one is told of good passwords only: that cannot be guessed with.
    if (complaints.length > 0) return complaints;
    if ((await recognise(passwords, user, password)) === undefined) return [];
    return [{ path, message: 'Must not be the current password.' }];
  }

  return async ({ caller, body, address }) => {
    const { id } = caller;
    const user = await users.findById(id);
    if (!user) throw ended();
    const hash = await passwords.admit(async () => {
      const current = await isCurrent(user, caller, body.current_password, address);
      const complaints = await complaintsOf(user, current, body.new_password);
      if (complaints.length > 0) throw refused(...complaints);
      return passwords.hash(body.new_password);
    });
    await database.transaction(async (query) => {
      const now = await createUserStore(query).lock(id);
      const sessions = createSessionStore(query);
      if (!now || now.disabled || !(await sessions.isLive(id, Number(caller.sessionId)))) throw ended();
      // Nobody's password is overwritten by somebody who knew the one before.
      const same = now.passwordHash === user.passwordHash && now.tempPasswordHash === user.tempPasswordHash;
      if (!same) throw refused(wrong);
      await createUserStore(query).setPassword(id, hash);
      await audit(query, { event: 'password_changed', userId: id, actor: `user:${id}`, address });
      await sessions.endAll(id);
    });
    return { status: 204 };
  };
}
