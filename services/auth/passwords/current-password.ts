import type { AuditEvent } from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import type { UserCaller } from '../sessions/caller.ts';
import type { User } from '../user-store.ts';
import { matchPassword } from './temporary-password.ts';

/**
 * Returns whether the password is the user's current one; a temporary one only if the session began with it. Records a
 * wrong one as the event `failure`. Throttled like logins, against the holder of a stolen token. Throws 429.
 */
export async function isCurrentPassword(
  { database, passwords, throttle }: Pick<AuthContext, 'database' | 'passwords' | 'throttle'>,
  user: User,
  caller: UserCaller,
  { password, address, failure }: { password: string; address: string; failure: AuditEvent },
): Promise<boolean> {
  const { account } = await database.users.lookUp(user.email);
  const isKnown = (network: string) => database.sessions.isKnownNetwork(user.id, network);
  const { outcome, limited } = await throttle.run({ account, address, isKnown }, async () => {
    const kind = await matchPassword(passwords, user, password);
    return { ok: kind === 'own' || (kind === 'temporary' && caller.mustChangePassword) };
  });
  if (!outcome.ok) {
    const details = { reason: 'wrong password', session: Number(caller.sessionId) };
    await database.audit.add({ ...byUser(user.id, address), event: failure, details });
  }
  if (limited) throw limited;
  return outcome.ok;
}
