import { type Handler, HttpError } from '@content-platform/chassis';
import type { backchannelLogout as contract } from '@content-platform/contract';
import type { AuthContext } from '../context.ts';
import { IdentityFailure } from '../identity/failure.ts';
import type { LogoutToken } from '../identity/logout-token.ts';
import { sha256 } from '../sessions/opaque-token.ts';
import type { Stores } from '../stores.ts';

/** Ends the sessions and unfinished logins that the token names; returns false if the token was used before. */
async function endSessions(stores: Stores, { iss: issuer, jti, sub, sid }: LogoutToken, address: string) {
  const { identities, identityCodes, mfa, sessions, audit } = stores;
  if (!(await identities.useLogoutToken(sha256(JSON.stringify([issuer, jti]))))) return false;
  const known = sub === undefined ? undefined : await identities.findUserId({ issuer, subject: sub });
  const userIds = known === undefined ? await sessions.usersOfIdentitySession(issuer, sid) : [known];
  for (const userId of userIds) {
    await identityCodes.deleteOf(userId);
    await mfa.deleteIdentityLoginsOf(userId);
    const details = { session: 'identity', reason: 'logout at the identity provider', identity: issuer };
    await audit.add({ event: 'session_revoked', userId, address, details });
    await sessions.endOfIdentity(userId, issuer, sid);
  }
  return true;
}

function failed(error: unknown): HttpError {
  if (!(error instanceof IdentityFailure)) throw error;
  return error.code === 'identity_unavailable'
    ? new HttpError('identity_unavailable', 'The keys of the identity service cannot be read.', {
        cause: error,
      })
    : new HttpError('invalid_request', 'The logout token is not valid.', { cause: error });
}

/** OpenID Connect Back-Channel Logout 1.0: the provider reports that a user has logged out there. */
export function backchannelLogout({ identity, database, logger }: AuthContext): Handler<typeof contract> {
  return async ({ body: { logout_token: text }, address }) => {
    const token = await identity.checkLogoutToken(text).catch((error: unknown) => {
      const failure = failed(error);
      logger.warn({ reason: (error as Error).message }, 'a logout token was refused');
      throw failure;
    });
    const isNew = await database.transaction((stores) => endSessions(stores, token, address));
    if (!isNew) throw new HttpError('invalid_request', 'The logout token was used before.');
    return { status: 200, body: {} };
  };
}
