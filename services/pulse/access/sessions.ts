import { randomBytes } from 'node:crypto';
import type { AuthClient, From, Tokens } from './auth-client.ts';

interface Session {
  tokens: Tokens;
  /** ms */
  renewAt: number;
  /** When the access token ends, in ms. */
  goodUntil: number;
  /** When the session ends, in ms. */
  endsAt: number;
  renewal?: Promise<string | undefined>;
}

const maxSessions = 1_000;
/** A wall screen's day. */
export const sessionMs = 12 * 3_600_000;

/** So long before an access token ends a new one is asked for. */
const renewBeforeMs = 60_000;
const given = (tokens: Tokens, now: number) => ({
  tokens,
  renewAt: now + Math.max(0, tokens.lifetime - renewBeforeMs),
  goodUntil: now + tokens.lifetime,
});

/**
 * Who is signed in: the tokens stay here, a browser holds a random value that leads to them. In memory alone, so a
 * restart asks everybody again. Of more than 1,000 the oldest goes. `now` in ms.
 */
export function createSessions(auth: Pick<AuthClient, 'renew'>, now: () => number = Date.now) {
  const sessions = new Map<string, Session>();

  async function renew(value: string, session: Session, from: From): Promise<string | undefined> {
    const tokens = await auth.renew(session.tokens.refreshToken, from);
    if (!tokens) {
      sessions.delete(value);
      return undefined;
    }
    Object.assign(session, given(tokens, now()));
    return tokens.accessToken;
  }

  return {
    /** Returns the value for the browser's cookie. */
    open(tokens: Tokens): string {
      const value = randomBytes(32).toString('base64url');
      sessions.set(value, { ...given(tokens, now()), endsAt: now() + sessionMs });
      if (sessions.size > maxSessions) sessions.delete(sessions.keys().next().value!);
      return value;
    },

    /** An access token that is valid at the moment; undefined: there is no such session any more. Throws 503. */
    async tokenOf(value: string, from: From): Promise<string | undefined> {
      const session = sessions.get(value);
      if (!session) return undefined;
      if (session.endsAt <= now()) {
        sessions.delete(value);
        return undefined;
      }
      if (session.renewAt > now()) return session.tokens.accessToken;
      // A refresh token is good for once: two tabs that ask at once share it.
      session.renewal ??= renew(value, session, from).finally(() => delete session.renewal);
      return session.renewal.catch((error: unknown) => {
        // Who looks whether auth is away must not be kept out by that as long as their token is good.
        if (session.goodUntil > now()) return session.tokens.accessToken;
        throw error;
      });
    },

    end: (value: string): void => void sessions.delete(value),
  };
}
export type Sessions = ReturnType<typeof createSessions>;
