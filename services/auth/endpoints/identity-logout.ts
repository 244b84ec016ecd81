import type { Database, Handler, Logger } from '@content-platform/chassis';
import type { identityLogout as contract } from '@content-platform/contract';
import { buildEndSessionUrl } from 'openid-client';
import { audit } from '../audit.ts';
import { IdentityFailure } from '../identity/failure.ts';
import type { IdentityService } from '../identity/identity.ts';
import { createSessionStore } from '../sessions/session-store.ts';

export interface IdentityLogoutDeps {
  identity: IdentityService;
  database: Database;
  logger: Logger;
}

/** Ends our session whatever the identity service says, and tells where to end the one there. */
export function identityLogout({ identity, database, logger }: IdentityLogoutDeps): Handler<typeof contract> {
  /** OpenID Connect RP-Initiated Logout §2. Undefined when the identity service has no such place, or is away. */
  async function logoutUrl({
    issuer,
    idToken,
  }: {
    issuer: string;
    idToken: string;
  }): Promise<string | undefined> {
    try {
      const configuration = await identity.provider.configuration();
      const metadata = configuration.serverMetadata();
      // The session may be older than the configuration.
      if (metadata.issuer !== issuer || !metadata.end_session_endpoint) return undefined;
      return buildEndSessionUrl(configuration, { id_token_hint: idToken }).href;
    } catch (error) {
      if (!(error instanceof IdentityFailure)) throw error;
      logger.warn({ reason: error.message }, 'the session at the identity service goes on');
      return undefined;
    }
  }

  return async ({ caller, address }) => {
    const sessionId = Number(caller.sessionId);
    const origin = await database.transaction(async (query) => {
      const sessions = createSessionStore(query);
      const found = await sessions.originOf(caller.id, sessionId);
      const details = { session: sessionId };
      await audit(query, {
        event: 'logout',
        userId: caller.id,
        actor: `user:${caller.id}`,
        address,
        details,
      });
      await sessions.endOne(caller.id, sessionId);
      return found;
    });
    const url = origin && (await logoutUrl(origin));
    return { status: 200, body: url === undefined ? {} : { logout_url: url } };
  };
}
