import { type Handler, HttpError } from '@content-platform/chassis';
import type { reauthenticate as contract } from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { isCurrentPassword } from '../passwords/current-password.ts';
import { acceptProof, throttleProof } from '../mfa/second-factor.ts';
import { sessionEnded } from '../replies.ts';
import type { Stores } from '../stores.ts';

/** Confirms the password or a code, so that the session counts as a recent login for 15 minutes. */
export function reauthenticate(context: AuthContext): Handler<typeof contract> {
  const { database, passwords, totpKey, equalizeFailureTime } = context;

  /** Checks a code and marks the session in one transaction. */
  async function confirmCode(code: string, caller: { id: number; sessionId: string }, address: string) {
    const { ok } = await throttleProof(context, caller.id, address, () =>
      database.transaction(async (stores) => {
        if (!(await acceptProof(stores, totpKey, caller.id, { code }))) return { ok: false };
        await markRecent(stores, caller.id, Number(caller.sessionId), address);
        return { ok: true };
      }),
    );
    return ok;
  }

  return async ({ caller, body, address }) => {
    const start = performance.now();
    const user = await database.users.findById(caller.id);
    if (!user || user.disabled) throw sessionEnded();
    const failure = 'reauthentication_failed';
    const confirmed =
      body.code !== undefined
        ? await confirmCode(body.code, caller, address)
        : await passwords.limit(() =>
            isCurrentPassword(context, user, caller, { password: body.password!, address, failure }),
          );
    if (!confirmed) {
      await equalizeFailureTime(start);
      throw new HttpError('invalid_credentials', 'The password or the code is wrong.');
    }
    if (body.code !== undefined) return { status: 204 };
    await database.transaction(async (stores) => {
      // The password may have been changed since the check.
      if (!(await stores.users.lockIfUnchanged(user.id, user.passwordHash))) throw sessionEnded();
      await markRecent(stores, user.id, Number(caller.sessionId), address);
    });
    return { status: 204 };
  };
}

/** Throws 401 if the session has ended. */
async function markRecent({ sessions, audit }: Stores, userId: number, sessionId: number, address: string) {
  if (!(await sessions.markRecent(userId, sessionId))) throw sessionEnded();
  await audit.add({ ...byUser(userId, address), event: 'reauthenticated', details: { session: sessionId } });
}
