import { createHmac } from 'node:crypto';
import { type Database, HttpError } from '@content-platform/chassis';
import type { AccessTokens } from '../access-tokens.ts';
import { audit } from '../audit.ts';
import { isToken, randomToken, sha256 } from './opaque-token.ts';
import { createSessionStore, type NewSession, type SessionStore } from './session-store.ts';
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
 * What is had again is the end of that chain: a successor that was used meanwhile would be taken for stolen later.
 */
export function createSessions(database: Database, tokens: AccessTokens, secret: Buffer) {
  const successorOf = (token: string) => createHmac('sha256', secret).update(token).digest('base64url');

  /** The token itself, or, where it was replaced a moment ago, the end of its chain, when each step to it was so, too. */
  async function newestOf(store: SessionStore, token: string) {
    let presented = await store.present(sha256(token));
    while (presented?.state === 'valid' && presented.replaced) {
      token = successorOf(token);
      presented = await store.find(sha256(token));
    }
    return { newest: token, presented };
  }

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
      const outcome = await database.transaction(async (query) => {
        const store = createSessionStore(query);
        const { newest, presented } = await newestOf(store, refreshToken);
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
        const accessToken = tokens.forUser(user, sessionId, mustChangePassword);
        if (newest !== refreshToken) return { user, accessToken, refreshToken: newest };
        const successor = successorOf(refreshToken);
        await store.replace(sessionId, sha256(refreshToken), sha256(successor));
        return { user, accessToken, refreshToken: successor };
      });
      if (typeof outcome === 'string') throw invalidGrant(outcome);
      return outcome;
    },
  };
}
