import { type Caller, type Handler, HttpError } from '@content-platform/chassis';
import type { changePassword as contract } from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import type { PasswordPolicy } from '../passwords/password-policy.ts';
import type { Passwords } from '../passwords/passwords.ts';
import { matchPassword } from '../passwords/temporary-password.ts';
import type { AuthDatabase } from '../stores.ts';
import type { LoginThrottle } from '../throttle/login-throttle.ts';
import type { User } from '../user-store.ts';

export interface ChangePasswordDeps {
  database: AuthDatabase;
  passwords: Passwords;
  policy: PasswordPolicy;
  throttle: LoginThrottle;
}

type UserCaller = Extract<Caller, { kind: 'user' }>;
type Complaint = { path: 'body.current_password' | 'body.new_password'; message: string };

function refused(...complaints: Complaint[]): HttpError<'validation_failed'> {
  return new HttpError('validation_failed', 'The password was not changed.', { details: complaints });
}

function sessionEnded(): HttpError<'invalid_token'> {
  return new HttpError('invalid_token', 'The session of this access token has ended.', {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
  });
}

const wrong: Complaint = { path: 'body.current_password', message: 'Is not the current password.' };

/**
 * ASVS 5.0 6.2.2 and 6.2.3; 7.4.3: all sessions end. After a login with a temporary password that password counts as the
 * current one as long as the session lasts, but the user cannot keep it (6.4.1).
 */
export function changePassword(deps: ChangePasswordDeps): Handler<typeof contract> {
  const { database, passwords, policy, throttle } = deps;

  /** Throttled as logins are: the holder of a stolen token could guess here, too. Throws 429 after too many failures. */
  async function isCurrent(user: User, caller: UserCaller, password: string, address: string) {
    const { account } = await database.users.lookUp(user.email);
    const isKnown = (network: string) => database.sessions.isKnownNetwork(user.id, network);
    const { outcome, limited } = await throttle.run({ account, address, isKnown }, async () => {
      const kind = await matchPassword(passwords, user, password);
      return { ok: kind === 'own' || (kind === 'temporary' && caller.mustChangePassword) };
    });
    if (!outcome.ok) {
      const details = { reason: 'wrong password', session: Number(caller.sessionId) };
      await database.audit.add({ ...byUser(user.id, address), event: 'password_change_failed', details });
    }
    if (limited) throw limited;
    return outcome.ok;
  }

  async function complaintsOf(user: User, current: boolean, password: string): Promise<Complaint[]> {
    const path = 'body.new_password';
    const weakness = policy.complaint(password, user);
    const complaints = weakness === undefined ? [] : [{ path, message: weakness } as const];
    if (!current) return [wrong, ...complaints];
    // Only a good new password is compared with the current one, so that this cannot be used to guess.
    if (complaints.length > 0) return complaints;
    if ((await matchPassword(passwords, user, password)) === undefined) return [];
    return [{ path, message: 'Must not be the current password.' }];
  }

  return async ({ caller, body, address }) => {
    const { id } = caller;
    const user = await database.users.findById(id);
    if (!user) throw sessionEnded();
    const hash = await passwords.admit(async () => {
      const current = await isCurrent(user, caller, body.current_password, address);
      const complaints = await complaintsOf(user, current, body.new_password);
      if (complaints.length > 0) throw refused(...complaints);
      return passwords.hash(body.new_password);
    });
    await database.transaction(async ({ users, sessions, audit }) => {
      const now = await users.lock(id);
      if (!now || now.disabled || !(await sessions.isLive(id, Number(caller.sessionId))))
        throw sessionEnded();
      // Knowing an earlier password must not be enough to replace the current one.
      const same = now.passwordHash === user.passwordHash && now.tempPasswordHash === user.tempPasswordHash;
      if (!same) throw refused(wrong);
      await users.setPassword(id, hash);
      await audit.add({ ...byUser(id, address), event: 'password_changed' });
      await sessions.endAll(id);
    });
    return { status: 204 };
  };
}
