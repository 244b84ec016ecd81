import { type Handler, HttpError } from '@content-platform/chassis';
import type { reauthenticate as contract } from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { isCurrentPassword } from '../passwords/current-password.ts';
import { sessionEnded } from '../replies.ts';

/** Confirms the password, so that the session counts as a recent login for 15 minutes. */
export function reauthenticate(context: AuthContext): Handler<typeof contract> {
  const { database, passwords, equalizeFailureTime } = context;
  return async ({ caller, body: { password }, address }) => {
    const start = performance.now();
    const user = await database.users.findById(caller.id);
    if (!user || user.disabled) throw sessionEnded();
    const failure = 'reauthentication_failed';
    const confirmed = await passwords.admit(() =>
      isCurrentPassword(context, user, caller, { password, address, failure }),
    );
    if (!confirmed) {
      await equalizeFailureTime(start);
      throw new HttpError('invalid_credentials', 'The password is wrong.');
    }
    const sessionId = Number(caller.sessionId);
    await database.transaction(async ({ users, sessions, audit }) => {
      // The password may have been changed, and the session ended, since the check.
      const unchanged = await users.lockIfUnchanged(user.id, user.passwordHash);
      if (!unchanged || !(await sessions.markRecent(user.id, sessionId))) throw sessionEnded();
      const details = { session: sessionId };
      await audit.add({ ...byUser(user.id, address), event: 'reauthenticated', details });
    });
    return { status: 204 };
  };
}
