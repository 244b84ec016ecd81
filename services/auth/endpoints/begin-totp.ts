import { HttpError, type Handler } from '@content-platform/chassis';
import type { beginTotp as contract } from '@content-platform/contract';
import type { AuthContext } from '../context.ts';
import { encrypt } from '../keys/sealing.ts';
import { totpContext, encodeTotpSecret, newTotpSecret } from '../mfa/second-factor.ts';
import { sessionEnded } from '../replies.ts';
import { requireRecentLogin } from '../sessions/recent-login.ts';

/** Creates a secret. Logins need a code only after the user has confirmed it. */
export function beginTotp({ database, totpKey }: AuthContext): Handler<typeof contract> {
  return async ({ caller }) => {
    await requireRecentLogin(database.sessions, caller);
    const user = await database.users.findById(caller.id);
    if (!user) throw sessionEnded();
    const secret = newTotpSecret();
    if (!(await database.mfa.begin(user.id, encrypt(secret, totpKey, totpContext(user.id))))) {
      throw new HttpError('mfa_enabled', 'A second factor is set up already. Remove it first.');
    }
    return { status: 201, body: encodeTotpSecret(secret, user.email) };
  };
}
