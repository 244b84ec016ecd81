import { type Handler, HttpError } from '@content-platform/chassis';
import type { deleteMe as contract } from '@content-platform/contract';
import { removeUser } from '../administration.ts';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { acceptProof, throttleProof } from '../mfa/second-factor.ts';
import { isCurrentPassword } from '../passwords/current-password.ts';
import { sessionEnded } from '../replies.ts';
import { requireRecentLogin } from '../sessions/recent-login.ts';
import type { User } from '../user-store.ts';

const refused = () =>
  new HttpError(
    'reauthentication_required',
    'Send your current password, and the code of your second factor if you have one.',
  );

/**
 * Deletes the caller's account. It needs the password and the code in addition to the recent login, because a stolen
 * session must not be enough. A user without a password has proven their identity at the identity provider.
 */
export function deleteMe(context: AuthContext): Handler<typeof contract> {
  const { database, passwords, totpKey, equalizeFailureTime } = context;

  /** Deletes the user if the account is still as it was when `user` was read. Returns false for a wrong code. */
  async function remove(user: User, sessionId: number, code: string | undefined, address: string) {
    return database.transaction(async (stores) => {
      if (user.hasMfa && !(await acceptProof(stores, totpKey, user.id, { code }))) return { ok: false };
      const now = await stores.users.lock(user.id);
      if (!now || now.disabled || !(await stores.sessions.isLive(user.id, sessionId))) throw sessionEnded();
      if (now.passwordHash !== user.passwordHash || now.hasMfa !== user.hasMfa) throw refused();
      await removeUser(stores, now, byUser(user.id, address));
      return { ok: true };
    });
  }

  return async ({ caller, body = {}, address }) => {
    const start = performance.now();
    await requireRecentLogin(database.sessions, caller);
    const user = await database.users.findById(caller.id);
    if (!user || user.disabled) throw sessionEnded();
    const { current_password: password, code } = body;
    if (user.hasMfa && code === undefined) throw refused();
    if (user.passwordHash !== null || password !== undefined) {
      if (password === undefined) throw refused();
      const guess = { password, address, failure: 'reauthentication_failed' } as const;
      if (!(await passwords.limit(() => isCurrentPassword(context, user, caller, guess)))) {
        await equalizeFailureTime(start);
        throw refused();
      }
    }
    const attempt = () => remove(user, Number(caller.sessionId), code, address);
    const { ok } = user.hasMfa ? await throttleProof(context, user.id, address, attempt) : await attempt();
    if (!ok) throw refused();
    return { status: 204 };
  };
}
