import { type Handler, HttpError, invalidFields } from '@content-platform/chassis';
import type * as contract from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { encrypt } from '../keys/sealing.ts';
import { tokenContext } from '../password-reset/send-mails.ts';
import { isCurrentPassword } from '../passwords/current-password.ts';
import { matchPassword } from '../passwords/temporary-password.ts';
import { findCaller, sessionEnded, type UserCaller } from '../sessions/caller.ts';
import { isToken, randomToken, sha256 } from '../sessions/opaque-token.ts';
import type { Stores } from '../stores.ts';
import type { User } from '../user-store.ts';

type InvalidField = { path: 'body.current_password' | 'body.new_password'; message: string };

const wrong: InvalidField = { path: 'body.current_password', message: 'Is not the current password.' };

function refused(...details: InvalidField[]): HttpError<'validation_failed'> {
  return new HttpError('validation_failed', 'The password was not changed.', { details });
}

/**
 * Changes the caller's password (ASVS 5.0 6.2.2, 6.2.3) and ends all sessions (7.4.3). In a session that began with a
 * temporary password, that password is accepted as the current one; the user cannot keep it (6.4.1).
 */
export function changePassword(context: AuthContext): Handler<typeof contract.changePassword> {
  const { database, passwords, policy } = context;

  async function findProblems(
    user: User,
    caller: UserCaller,
    { current_password: password, new_password: chosen }: contract.Body<typeof contract.changePassword>,
    address: string,
  ): Promise<InvalidField[]> {
    const path = 'body.new_password';
    const problems: InvalidField[] = [];
    const guess = { password, address, failure: 'password_change_failed' } as const;
    if (!(await isCurrentPassword(context, user, caller, guess))) problems.push(wrong);
    const weakness = await policy.findProblem(chosen, user);
    if (weakness !== undefined) problems.push({ path, message: weakness });
    // Only for a caller who knows the current password: to others, this reply would confirm a guess of it.
    if (problems.length === 0 && (await matchPassword(passwords, user, chosen)))
      problems.push({ path, message: 'Must not be the current password.' });
    return problems;
  }

  return async ({ caller, body, address }) => {
    const { id } = caller;
    const user = await findCaller(database.users, caller);
    const hash = await passwords.limit(async () => {
      const problems = await findProblems(user, caller, body, address);
      if (problems.length > 0) throw refused(...problems);
      return passwords.hash(body.new_password);
    });
    await database.transaction(async ({ users, passwordResets, sessions, audit }) => {
      const current = await users.lock(id);
      if (!current || current.disabled || !(await sessions.isLive(id, Number(caller.sessionId))))
        throw sessionEnded();
      // Knowledge of an earlier password must not be enough to replace the current one.
      const same =
        current.passwordHash === user.passwordHash && current.tempPasswordHash === user.tempPasswordHash;
      if (!same) throw refused(wrong);
      await users.setPassword(id, hash);
      await passwordResets.cancelOf(id);
      await audit.add({ ...byUser(id, address), event: 'password_changed' });
      await sessions.endAll(id);
    });
    return { status: 204 };
  };
}

/** Does the same work for an unknown email as for a known one. A background task decides whether a mail is sent. */
export function forgotPassword(context: AuthContext): Handler<typeof contract.forgotPassword> {
  const { database, resetKey, equalizeFailureTime } = context;
  return async ({ body: { email }, address }) => {
    const start = performance.now();
    const { user } = await database.users.lookUp(email);
    const token = randomToken();
    await database.passwordResets.add({
      userId: user?.id,
      address,
      tokenHash: sha256(token),
      encryptedToken: encrypt(Buffer.from(token), resetKey!, tokenContext),
    });
    await equalizeFailureTime(start);
    return { status: 202 };
  };
}

function invalidToken(): HttpError<'invalid_reset_token'> {
  return new HttpError('invalid_reset_token', 'The link is not valid any more. Request a new one.');
}

/** Returns the enabled user to whom the token was sent; with `lock`, locks the user. Throws 400. */
async function findUserOfToken({ passwordResets, users }: Stores, token: string, { lock = false } = {}) {
  const id = isToken(token) ? await passwordResets.findUserId(sha256(token)) : undefined;
  const user = id === undefined ? undefined : await (lock ? users.lock(id) : users.findById(id));
  if (!user || user.disabled) throw invalidToken();
  return user;
}

/** Sets a new password with the token of a mail. The second factor stays (ASVS 5.0 6.4.3). */
export function resetPassword(context: AuthContext): Handler<typeof contract.resetPassword> {
  const { database, passwords, policy } = context;
  return async ({ body: { token, new_password: password }, address }) => {
    const user = await findUserOfToken(database, token);
    const message = await policy.findProblem(password, user);
    if (message !== undefined) throw invalidFields([{ path: 'body.new_password', message }]);
    const hash = await passwords.limit(() => passwords.hash(password));
    await database.transaction(async (stores) => {
      const { users, passwordResets, mfa, identityCodes, sessions, audit } = stores;
      const { id } = await findUserOfToken(stores, token, { lock: true });
      // Another request may have used the token before this one got the lock.
      if ((await passwordResets.findUserId(sha256(token))) === undefined) throw invalidToken();
      await users.setPassword(id, hash);
      await passwordResets.cancelOf(id);
      await mfa.deleteLoginsOf(id);
      await identityCodes.deleteOf(id);
      await audit.add({ ...byUser(id, address), event: 'password_reset' });
      await sessions.endAll(id);
    });
    return { status: 204 };
  };
}
