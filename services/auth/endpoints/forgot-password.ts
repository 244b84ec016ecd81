import type { Handler } from '@content-platform/chassis';
import type { forgotPassword as contract } from '@content-platform/contract';
import type { AuthContext } from '../context.ts';
import { encrypt } from '../keys/sealing.ts';
import { tokenContext } from '../password-reset/send-mails.ts';
import { randomToken, sha256 } from '../sessions/opaque-token.ts';

/**
 * Stores the request for a link by mail. Does the same work for an unknown email as for a known one. A background task
 * decides whether a mail is sent.
 */
export function forgotPassword({
  database,
  resetKey,
  equalizeFailureTime,
}: AuthContext): Handler<typeof contract> {
  return async ({ body: { email }, address }) => {
    const start = performance.now();
    const { user } = await database.users.lookUp(email);
    const token = randomToken();
    await database.passwordResets.add({
      userId: user?.id,
      address,
      tokenHash: sha256(token),
      encryptedToken: encrypt(Buffer.from(token), resetKey!, tokenContext),
    });
    await equalizeFailureTime(start);
    return { status: 202 };
  };
}
