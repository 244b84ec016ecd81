import { type Caller, type Handler, HttpError } from '@content-platform/chassis';
import type { Body, changePassword as contract } from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { isCurrentPassword } from '../passwords/current-password.ts';
import { matchPassword } from '../passwords/temporary-password.ts';
import { sessionEnded } from '../replies.ts';
import type { User } from '../user-store.ts';

type UserCaller = Extract<Caller, { kind: 'user' }>;
type InvalidField = { path: 'body.current_password' | 'body.new_password'; message: string };

const wrong: InvalidField = { path: 'body.current_password', message: 'Is not the current password.' };

function refused(...problems: InvalidField[]): HttpError<'validation_failed'> {
  return new HttpError('validation_failed', 'The password was not changed.', { details: problems });
}

/**
 * Changes the caller's password (ASVS 5.0 6.2.2 and 6.2.3) and ends all sessions (7.4.3). In a session that began with
 * a temporary password, the temporary password is accepted as the current one. The user cannot keep it (6.4.1).
 */
export function changePassword(context: AuthContext): Handler<typeof contract> {
  const { database, passwords, policy } = context;

  /**
   * Compares the new password with the current one only if the policy accepts it; otherwise this would allow guessing.
   */
  async function findProblems(
    user: User,
    caller: UserCaller,
    body: Body<typeof contract>,
    address: string,
  ): Promise<InvalidField[]> {
    const path = 'body.new_password';
    const complaints: InvalidField[] = [];
    const guess = { password: body.current_password, address, failure: 'password_change_failed' } as const;
    if (!(await isCurrentPassword(context, user, caller, guess))) complaints.push(wrong);
    const weakness = policy.findProblem(body.new_password, user);
    if (weakness !== undefined) complaints.push({ path, message: weakness });
    if (complaints.length === 0 && (await matchPassword(passwords, user, body.new_password)))
      complaints.push({ path, message: 'Must not be the current password.' });
    return complaints;
  }

  return async ({ caller, body, address }) => {
    const { id } = caller;
    const user = await database.users.findById(id);
    if (!user) throw sessionEnded();
    const hash = await passwords.limit(async () => {
      const complaints = await findProblems(user, caller, body, address);
      if (complaints.length > 0) throw refused(...complaints);
      return passwords.hash(body.new_password);
    });
    await database.transaction(async ({ users, passwordResets, sessions, audit }) => {
      const now = await users.lock(id);
      if (!now || now.disabled || !(await sessions.isLive(id, Number(caller.sessionId))))
        throw sessionEnded();
      // Knowledge of an earlier password must not be enough to replace the current one.
      const same = now.passwordHash === user.passwordHash && now.tempPasswordHash === user.tempPasswordHash;
      if (!same) throw refused(wrong);
      await users.setPassword(id, hash);
      await passwordResets.cancelOf(id);
      await audit.add({ ...byUser(id, address), event: 'password_changed' });
      await sessions.endAll(id);
    });
    return { status: 204 };
  };
}
