import { randomBytes } from 'node:crypto';
import type { AuthClient, ClientHeaders, Tokens } from './auth-client.ts';

interface Session {
  tokens: Tokens;
  /** When the access token is renewed, in ms. */
  renewAt: number;
  /** When the access token expires, in ms. */
  validUntil: number;
  /** When the session ends, in ms. */
  endsAt: number;
  renewal?: Promise<string | undefined>;
}

const maxSessions = 1_000;
/** 12 hours, so that a wall screen stays signed in for a day's work. */
export const sessionMs = 12 * 3_600_000;

/** An access token is renewed this long before it expires. */
const renewBeforeMs = 60_000;
const withTimes = (tokens: Tokens, now: number) => ({
  tokens,
  renewAt: now + Math.max(0, tokens.lifetimeMs - renewBeforeMs),
  validUntil: now + tokens.lifetimeMs,
});

/** Holds the tokens of viewers in memory. The browser has a random value. The 1,001st session replaces the oldest. */
export function createSessions(auth: Pick<AuthClient, 'renew'>, now: () => number = Date.now) {
  const sessions = new Map<string, Session>();

  async function renew(value: string, session: Session, from: ClientHeaders): Promise<string | undefined> {
    const tokens = await auth.renew(session.tokens.refreshToken, from);
    if (!tokens) return void sessions.delete(value);
    Object.assign(session, withTimes(tokens, now()));
    return tokens.accessToken;
  }

  return {
    /** Opens a session and returns the value for the browser's cookie. */
    open(tokens: Tokens): string {
      const value = randomBytes(32).toString('base64url');
      sessions.set(value, { ...withTimes(tokens, now()), endsAt: now() + sessionMs });
      if (sessions.size > maxSessions) sessions.delete(sessions.keys().next().value!);
      return value;
    },

    /** Returns a valid access token other than `refused`; undefined: the session has ended. Throws 503. */
    async tokenOf(value: string, from: ClientHeaders, refused?: string): Promise<string | undefined> {
      const session = sessions.get(value);
      if (!session || session.endsAt <= now()) return void sessions.delete(value);
      const { accessToken } = session.tokens;
      if (session.renewAt > now() && accessToken !== refused) return accessToken;
      // A refresh token is accepted once, so that concurrent requests of two tabs must share the renewal.
      session.renewal ??= renew(value, session, from).finally(() => delete session.renewal);
      return session.renewal.catch((error: unknown) => {
        // While auth is unavailable, a viewer with a valid token must still see the page.
        if (session.validUntil > now() && accessToken !== refused) return accessToken;
        throw error;
      });
    },

    end: (value = ''): void => void sessions.delete(value),
  };
}
export type Sessions = ReturnType<typeof createSessions>;
