import { type Handler, HttpError, invalidFields } from '@content-platform/chassis';
import type { resetPassword as contract } from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { isToken, sha256 } from '../sessions/opaque-token.ts';
import type { Stores } from '../stores.ts';

function invalidToken(): HttpError<'invalid_reset_token'> {
  return new HttpError('invalid_reset_token', 'The link is not valid any more. Request a new one.');
}

/** Returns the enabled user to whom the token was sent. Throws 400. */
async function findUser({ passwordResets, users }: Stores, token: string, lock: boolean) {
  const id = isToken(token) ? await passwordResets.findUserId(sha256(token)) : undefined;
  const user = id === undefined ? undefined : await (lock ? users.lock(id) : users.findById(id));
  if (!user || user.disabled) throw invalidToken();
  return user;
}

/** Sets a new password with the token of a mail. The second factor stays (ASVS 5.0 6.4.3). */
export function resetPassword({ database, passwords, policy }: AuthContext): Handler<typeof contract> {
  return async ({ body: { token, new_password: password }, address }) => {
    const person = await findUser(database, token, false);
    const message = policy.findProblem(password, person);
    if (message !== undefined) throw invalidFields([{ path: 'body.new_password', message }]);
    const hash = await passwords.limit(() => passwords.hash(password));
    await database.transaction(async (stores) => {
      const { users, passwordResets, mfa, identityCodes, sessions, audit } = stores;
      const { id } = await findUser(stores, token, true);
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
