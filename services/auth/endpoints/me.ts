import { type Handler, HttpError, rowsOf } from '@content-platform/chassis';
import type * as contract from '@content-platform/contract';
import { removeUser } from '../administration.ts';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { acceptProof, throttleProof } from '../mfa/second-factor.ts';
import { isCurrentPassword } from '../passwords/current-password.ts';
import { toIdentity, toProfile, toSession } from '../replies.ts';
import { findCaller, sessionEnded } from '../sessions/caller.ts';
import type { User } from '../user-store.ts';

export function me({ database }: AuthContext): Handler<typeof contract.me> {
  return async ({ caller }) => ({ status: 200, body: toProfile(await findCaller(database.users, caller)) });
}

export function exportMe({ database, personalData }: AuthContext): Handler<typeof contract.exportMe> {
  return async ({ caller, address, signal }) => {
    const { identities, sessions, users, audit } = database;
    const user = await findCaller(users, caller);
    const linked = await identities.list(user.id);
    const profile = {
      ...toProfile(user),
      identities: linked.map((one) => ({ ...toIdentity(one), subject: one.subject })),
    };
    const stored = await rowsOf(async (last?: { id: number }) =>
      (await sessions.list(user.id, last?.id, 500, 'all')).map((one) => ({
        ...toSession(one, caller),
        active: one.active,
      })),
    );
    const body = await personalData.export(profile, stored, signal());
    await audit.add({ ...byUser(user.id, address), event: 'data_exported' }).catch((error: unknown) => {
      body.destroy();
      throw error;
    });
    return { status: 200, body, headers: { 'Content-Type': 'application/json; charset=utf-8' } };
  };
}

function refused(): HttpError<'reauthentication_required'> {
  const message = 'Send your current password, and the code of your second factor if you have one.';
  return new HttpError('reauthentication_required', message);
}

/**
 * Beside the recent login, needs the password and the code of a second factor: a stolen session must not be enough. For
 * users who have neither, the recent login is enough.
 */
export function deleteMe(context: AuthContext): Handler<typeof contract.deleteMe> {
  const { database, passwords, totpKey, equalizeFailureTime } = context;

  /** Deletes the user if the account is still as it was when `user` was read. Returns false for a wrong code. */
  async function remove(user: User, sessionId: number, code: string | undefined, address: string) {
    return database.transaction(async (stores) => {
      if (user.hasMfa && !(await acceptProof(stores, totpKey, user.id, { code }))) return { ok: false };
      const current = await stores.users.lock(user.id);
      if (!current || current.disabled || !(await stores.sessions.isLive(user.id, sessionId)))
        throw sessionEnded();
      if (current.passwordHash !== user.passwordHash || current.hasMfa !== user.hasMfa) throw refused();
      await removeUser(stores, current, byUser(user.id, address));
      return { ok: true };
    });
  }

  return async ({ caller, body: { current_password: password, code } = {}, address }) => {
    const start = performance.now();
    const user = await findCaller(database.users, caller);
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
