import { createHmac } from 'node:crypto';
import { type Database, HttpError } from '@content-platform/chassis';
import type { AccessTokens } from '../access-tokens.ts';
import { audit } from '../audit.ts';
import { isToken, randomToken, sha256 } from './opaque-token.ts';
import { createSessionStore, type NewSession } from './session-store.ts';
import { createUserStore, type User } from '../user-store.ts';

/** What a client gets at a login and at each refresh. */
export interface TokenPair {
  accessToken: string;
  refreshToken: string;
}

export interface RefreshedSession extends TokenPair {
  user: User;
}

type Reason = 'expired' | 'revoked' | 'reused' | 'unknown';

/** RFC 6749 §5.2; the reason tells a client whether to ask for a login or to tell the person of a theft. */
export function invalidGrant(reason: Reason): HttpError<'invalid_grant'> {
  return new HttpError(400, 'invalid_grant', 'The refresh token or code is not valid.', [
    { path: 'reason', message: reason },
  ]);
}

export type Sessions = ReturnType<typeof createSessions>;

/**
 * Opens sessions and keeps them alive. A refresh token is replaced at each use (RFC 9700 §4.14.2); its successor is
 * derived from it under `secret`, so that an answer that was lost can be had again, and two tabs stay on one chain.
 */
export function createSessions(database: Database, tokens: AccessTokens, secret: Buffer) {
  const successorOf = (token: string) => createHmac('sha256', secret).update(token).digest('base64url');

  return {
    /** In the transaction of the login, which has checked the user and holds their row. */
    async open(
      query: Database['query'],
      user: User,
      session: Omit<NewSession, 'userId'>,
    ): Promise<TokenPair & { sessionId: number }> {
      const refreshToken = randomToken();
      const sessionId = await createSessionStore(query).open(
        { ...session, userId: user.id },
        sha256(refreshToken),
      );
      const accessToken = tokens.forUser(user, sessionId, session.mustChangePassword);
      return { accessToken, refreshToken, sessionId };
    },

    /** Throws 400 `invalid_grant`. A token that was replaced before ends the whole session: somebody else has it. */
    async refresh(refreshToken: string, address: string): Promise<RefreshedSession> {
      if (!isToken(refreshToken)) throw invalidGrant('unknown');
      const hash = sha256(refreshToken);
      const successor = successorOf(refreshToken);
      const outcome = await database.transaction(async (query) => {
        const store = createSessionStore(query);
        const presented = await store.present(hash);
        if (!presented) return 'unknown';
        const { sessionId, userId, mustChangePassword, state } = presented;
        if (state === 'reused') {
          await audit(query, {
            event: 'refresh_token_reused',
            userId,
            address,
            details: { session: sessionId },
          });
          await store.endOne(userId, sessionId);
        }
        if (state !== 'valid') return state;
        const user = await createUserStore(query).findById(userId);
        if (!user) return 'revoked';
        if (!presented.replaced) await store.replace(sessionId, hash, sha256(successor));
        return { user, accessToken: tokens.forUser(user, sessionId, mustChangePassword) };
      });
      if (typeof outcome === 'string') throw invalidGrant(outcome);
      return { ...outcome, refreshToken: successor };
    },
  };
}
