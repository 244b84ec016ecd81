import type { Handler } from '@content-platform/chassis';
import type { identityLogout as contract } from '@content-platform/contract';
import { buildEndSessionUrl } from 'openid-client';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { IdentityFailure } from '../identity/failure.ts';
import type { SessionOrigin } from '../sessions/session-store.ts';

/** Always ends our session, and returns the URL that ends the session at the identity provider. */
export function identityLogout({ identity, database, logger }: AuthContext): Handler<typeof contract> {
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
      logger.warn({ reason: error.message }, 'the session at the identity service was not ended');
      return undefined;
    }
  }

  return async ({ caller, address }) => {
    const sessionId = Number(caller.sessionId);
    const origin = await database.transaction(async ({ sessions, audit }) => {
      const found = await sessions.originOf(caller.id, sessionId);
      const details = { session: sessionId };
      await audit.add({ ...byUser(caller.id, address), event: 'logout', details });
      await sessions.endOne(caller.id, sessionId);
      return found;
    });
    const url = origin && (await logoutUrl(origin));
    return { status: 200, body: url === undefined ? {} : { logout_url: url } };
  };
}
