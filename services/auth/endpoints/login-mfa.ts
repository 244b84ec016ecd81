import { HttpError, type Handler } from '@content-platform/chassis';
import type { loginMfa as contract } from '@content-platform/contract';
import type { AuthContext } from '../context.ts';
import type { FirstFactor, PendingLogin } from '../mfa/mfa-store.ts';
import { acceptProof, type Proof, throttleProof } from '../mfa/second-factor.ts';
import { toLogin } from '../replies.ts';
import { deviceName } from '../sessions/device-name.ts';
import { isToken, sha256 } from '../sessions/opaque-token.ts';
import type { Stores } from '../stores.ts';

const refused = { ok: false } as const;

/** Locks and returns the user if the first factor is still valid, else undefined. Uses up a temporary password. */
async function confirmFirst({ users }: Stores, userId: number, first: FirstFactor) {
  if ('passwordHash' in first) return users.lockIfUnchanged(userId, first.passwordHash);
  if ('tempPasswordHash' in first) return users.consumeTemporaryPassword(userId, first.tempPasswordHash);
  const user = await users.lock(userId);
  return user?.disabled ? undefined : user;
}

/** Completes a login with the second factor. A wrong code leaves the login open for another attempt. */
export function loginMfa(context: AuthContext): Handler<typeof contract> {
  const { database, sessions, totpKey, logins, logger, equalizeFailureTime } = context;

  function complete(token: string, login: PendingLogin, proof: Proof, device: string, address: string) {
    const { userId, first } = login;
    const invalid = new Error('the login cannot be completed any more');
    const outcome = database.transaction(async (stores) => {
      if (!(await acceptProof(stores, totpKey, userId, proof))) return refused;
      const isOpen = await stores.mfa.deleteLogin(sha256(token));
      const user = isOpen ? await confirmFirst(stores, userId, first) : undefined;
      // Rolls back, so that the code is not used up without effect.
      if (!user) throw invalid;
      const isTemporary = 'tempPasswordHash' in first;
      const origin = 'origin' in first ? first.origin : undefined;
      const secondFactor = proof.code !== undefined ? 'totp' : 'recovery code';
      const session = { device, address, mustChangePassword: isTemporary, origin };
      const opened = await sessions.open(stores, user, session, secondFactor);
      return { ok: true, user, opened, isTemporary } as const;
    });
    return outcome.catch((error: unknown) => {
      if (error === invalid) return refused;
      throw error;
    });
  }

  function countLimited(error: unknown): never {
    if (error instanceof HttpError && error.error === 'rate_limited') logins.inc({ outcome: 'limited' });
    throw error;
  }

  return async ({ body: { mfa_token: token, ...proof }, header, address }) => {
    const start = performance.now();
    const login = isToken(token) ? await database.mfa.findLogin(sha256(token)) : undefined;
    const device = deviceName(header('user-agent'));
    const outcome = login
      ? await throttleProof(context, login.userId, address, () =>
          complete(token, login, proof, device, address),
        ).catch(countLimited)
      : refused;
    if (!outcome.ok) {
      logins.inc({ outcome: 'failure' });
      logger.info(
        { reason: login ? 'wrong code' : 'unknown mfa_token', user_id: login?.userId },
        'a login failed',
      );
      await equalizeFailureTime(start);
      throw new HttpError('invalid_credentials', 'The code is wrong or expired, or the login took too long.');
    }
    logins.inc({ outcome: 'success' });
    logger.info({ user_id: outcome.user.id }, 'logged in');
    return { status: 200, body: toLogin(outcome.user, outcome.opened, outcome.isTemporary) };
  };
}
