import { actorOf, type Caller, type Handler, HttpError, page } from '@content-platform/chassis';
import type * as contract from '@content-platform/contract';
import { findUser, lockUser } from '../administration.ts';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { acceptProof, throttleProof } from '../mfa/second-factor.ts';
import { isCurrentPassword } from '../passwords/current-password.ts';
import { toSession } from '../replies.ts';
import { findCaller, sessionEnded } from '../sessions/caller.ts';
import type { SessionStore } from '../sessions/session-store.ts';
import type { Stores } from '../stores.ts';

/** Returns a page of the user's sessions; `current` marks the caller's session. */
function pageOfSessions(
  sessions: SessionStore,
  userId: number,
  caller: Caller,
  { limit, cursor }: contract.Query<typeof contract.listSessions>,
) {
  const read = (rows: number) => sessions.list(userId, cursor, rows);
  return page(limit, read, (session) => toSession(session, caller));
}

export function listSessions({ database }: AuthContext): Handler<typeof contract.listSessions> {
  return async ({ caller, query }) => ({
    status: 200,
    body: await pageOfSessions(database.sessions, caller.id, caller, query),
  });
}

export function deleteSession({ database }: AuthContext): Handler<typeof contract.deleteSession> {
  return async ({ caller, params: { id }, address }) => {
    await database.transaction(async ({ sessions, audit }) => {
      const ended = await sessions.endOne(caller.id, id);
      // Another user's session gets the same reply as one that does not exist.
      if (!ended) throw new HttpError('not_found', `You have no session ${id}.`);
      const details = { session: id };
      await audit.add({ ...byUser(caller.id, address), event: 'session_revoked', details });
    });
    return { status: 204 };
  };
}

export function deleteSessions({ database }: AuthContext): Handler<typeof contract.deleteSessions> {
  return async ({ caller: { id }, address }) => {
    await database.transaction(async ({ sessions, audit }) => {
      const details = { session: 'all' };
      await audit.add({ ...byUser(id, address), event: 'session_revoked', details });
      await sessions.endAll(id);
    });
    return { status: 204 };
  };
}

export function listUserSessions({ database }: AuthContext): Handler<typeof contract.listUserSessions> {
  return async ({ caller, params: { id }, query }) => {
    await findUser(database.users, id);
    return { status: 200, body: await pageOfSessions(database.sessions, id, caller, query) };
  };
}

export function deleteUserSessions({ database }: AuthContext): Handler<typeof contract.deleteUserSessions> {
  return async ({ caller, params: { id }, address }) => {
    await database.transaction(async ({ users, sessions, audit }) => {
      await lockUser(users, id);
      const by = { userId: id, actor: actorOf(caller), address };
      await audit.add({ ...by, event: 'session_revoked', details: { session: 'all' } });
      await sessions.endAll(id);
    });
    return { status: 204 };
  };
}

export function logout({ database, pushDevices }: AuthContext): Handler<typeof contract.logout> {
  return async ({ caller: { id, sessionId }, body, address }) => {
    const session = Number(sessionId);
    await database.transaction(async ({ sessions, audit }) => {
      await audit.add({ ...byUser(id, address), event: 'logout', details: { session } });
      await sessions.endOne(id, session);
    });
    // Last, so that the session ends even if the devices service is unavailable.
    if (body?.fcm_token) await pushDevices.unregister(id, body.fcm_token);
    return { status: 204 };
  };
}

/** Confirms the password or a code, so that the session counts as a recent login for 15 minutes. */
export function reauthenticate(context: AuthContext): Handler<typeof contract.reauthenticate> {
  const { database, passwords, totpKey, equalizeFailureTime } = context;

  return async ({ caller, body: { password, code }, address }) => {
    const start = performance.now();
    const user = await findCaller(database.users, caller);
    const session = Number(caller.sessionId);

    /** Throws 401 if the session has ended. */
    async function markRecent({ sessions, audit }: Stores) {
      if (!(await sessions.markRecent(user.id, session))) throw sessionEnded();
      await audit.add({ ...byUser(user.id, address), event: 'reauthenticated', details: { session } });
    }

    /** Marks the session in the same transaction, so that the code is not used up without effect. */
    const confirmCode = () =>
      database.transaction(async (stores) => {
        if (!(await acceptProof(stores, totpKey, user.id, { code }))) return { ok: false };
        await markRecent(stores);
        return { ok: true };
      });

    async function confirmPassword() {
      const guess = { password: password!, address, failure: 'reauthentication_failed' } as const;
      const ok = await passwords.limit(() => isCurrentPassword(context, user, caller, guess));
      if (!ok) return { ok };
      await database.transaction(async (stores) => {
        // The password may have been changed since the check.
        if (!(await stores.users.lockIfUnchanged(user.id, user.passwordHash))) throw sessionEnded();
        await markRecent(stores);
      });
      return { ok };
    }

    const { ok } = await (code === undefined
      ? confirmPassword()
      : throttleProof(context, user.id, address, confirmCode));
    if (ok) return { status: 204 };
    await equalizeFailureTime(start);
    throw new HttpError('invalid_credentials', 'The password or the code is wrong.');
  };
}
