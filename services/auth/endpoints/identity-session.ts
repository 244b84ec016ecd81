import { type Handler, HttpError } from '@content-platform/chassis';
import type * as contract from '@content-platform/contract';
import { buildEndSessionUrl } from 'openid-client';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { IdentityFailure } from '../identity/failure.ts';
import type { LogoutToken } from '../identity/logout-token.ts';
import { cancelIdentityLogins } from '../identity/users.ts';
import { toProfile } from '../replies.ts';
import { sessionEnded } from '../sessions/caller.ts';
import { sha256 } from '../sessions/opaque-token.ts';
import type { SessionOrigin } from '../sessions/session-store.ts';
import type { Stores } from '../stores.ts';

/** Ends the sessions and unfinished logins that the token names; returns false if the token was used before. */
async function endSessions(stores: Stores, { iss: issuer, jti, sub, sid }: LogoutToken, address: string) {
  const { identities, sessions, audit } = stores;
  if (!(await identities.useLogoutToken(sha256(JSON.stringify([issuer, jti]))))) return false;
  const known = sub === undefined ? undefined : await identities.findUserId({ issuer, subject: sub });
  const userIds = known === undefined ? await sessions.usersOfIdentitySession(issuer, sid) : [known];
  // Sorted, because another token may name the same users: locks in another order could deadlock.
  for (const userId of userIds.toSorted((a, b) => a - b)) {
    await stores.users.lock(userId);
    await cancelIdentityLogins(stores, userId);
    const details = { session: 'identity', reason: 'logout at the identity provider', identity: issuer };
    await audit.add({ event: 'session_revoked', userId, address, details });
  }
  await sessions.endOfIdentity(userIds, issuer, sid);
  return true;
}

/** Ends sessions of a user who logged out at the provider (OpenID Connect Back-Channel Logout 1.0). */
export function backchannelLogout(context: AuthContext): Handler<typeof contract.backchannelLogout> {
  const { identity, database, logger } = context;
  return async ({ body: { logout_token: text }, address }) => {
    const token = await identity.checkLogoutToken(text).catch((cause: unknown) => {
      if (!(cause instanceof IdentityFailure)) throw cause;
      logger.warn({ reason: cause.message }, 'a logout token was refused');
      throw cause.code === 'identity_unavailable'
        ? new HttpError(cause.code, 'The keys of the identity provider cannot be read.', { cause })
        : new HttpError('invalid_request', 'The logout token is not valid.', { cause });
    });
    const isNew = await database.transaction((stores) => endSessions(stores, token, address));
    if (!isNew) throw new HttpError('invalid_request', 'The logout token was used before.');
    return { status: 200, body: {} };
  };
}

/** Always ends our session, and returns the URL that ends the session at the identity provider. */
export function identityLogout(context: AuthContext): Handler<typeof contract.identityLogout> {
  const { identity, database, logger } = context;

  /** OpenID Connect RP-Initiated Logout §2. Returns undefined if the provider does not offer it or is unavailable. */
  async function logoutUrl({ issuer, idToken }: SessionOrigin): Promise<string | undefined> {
    try {
      const configuration = await identity.provider.configuration();
      const metadata = configuration.serverMetadata();
      // The session may have begun at a provider that was configured earlier.
      if (metadata.issuer !== issuer || !metadata.end_session_endpoint) return undefined;
      return buildEndSessionUrl(configuration, { id_token_hint: idToken }).href;
    } catch (error) {
      if (!(error instanceof IdentityFailure)) throw error;
      logger.warn({ reason: error.message }, 'the session at the identity provider was not ended');
      return undefined;
    }
  }

  return async ({ caller: { id, sessionId }, address }) => {
    const session = Number(sessionId);
    const origin = await database.transaction(async ({ sessions, audit }) => {
      const found = await sessions.originOf(id, session);
      await audit.add({ ...byUser(id, address), event: 'logout', details: { session } });
      await sessions.endOne(id, session);
      return found;
    });
    const url = origin?.idToken ? await logoutUrl(origin) : undefined;
    return { status: 200, body: url === undefined ? {} : { logout_url: url } };
  };
}

/** Works while the identity provider is unavailable. A suborg that it withdraws is removed at the next login. */
export function updateSuborg({ database }: AuthContext): Handler<typeof contract.updateSuborg> {
  return async ({ caller: { id, sessionId }, body: { suborg }, address }) => {
    const user = await database.transaction(async ({ users, sessions, audit }) => {
      const origin = await sessions.originOf(id, Number(sessionId));
      if (!origin?.suborgs.includes(suborg)) {
        const message = 'The identity provider did not list this part of the organisation at your login.';
        throw new HttpError('suborg_not_allowed', message);
      }
      const changed = await users.setSuborg(id, suborg);
      await audit.add({ ...byUser(id, address), event: 'suborg_changed', details: { suborg } });
      return changed;
    });
    if (!user) throw sessionEnded();
    return { status: 200, body: { success: true, user: toProfile(user) } };
  };
}
