import { HttpError, unavailable } from '@content-platform/chassis';
import { login, logout, token, type ErrorEnvelope } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';

/** What auth gave for a password or a refresh token. */
export interface Tokens {
  accessToken: string;
  refreshToken: string;
  /** ms */
  lifetime: number;
}

export interface Login extends Tokens {
  mustChangePassword: boolean;
}

/** Headers that say whose request it is: auth counts guesses by the viewer's address, and names the session's device. */
export type From = Record<string, string>;

const withinMs = 5_000;

/** auth's own reasons stay what they are where a viewer can do something; the rest is that it is away. */
function failure(status: number, error: ErrorEnvelope, headers: Headers): HttpError {
  if (status === 401) return new HttpError(401, 'invalid_credentials', error.message);
  if (status === 429) {
    const retryAfter = { 'Retry-After': headers.get('retry-after') ?? '1' };
    return new HttpError(429, 'rate_limited', error.message, undefined, { headers: retryAfter });
  }
  return unavailable('Nobody can sign in at the moment.', error);
}

/** Asks the auth service at `url` for a viewer. */
export function createAuthClient(url: string) {
  const ask = (headers: From) => ({ headers, signal: AbortSignal.timeout(withinMs) });
  const away = (cause: unknown) => Promise.reject(unavailable('Nobody can sign in at the moment.', cause));

  return {
    /** Throws 401 `invalid_credentials`, 429, or 503. */
    async logIn(credentials: { email: string; password: string }, from: From): Promise<Login> {
      const answer = await call(url, login, { body: credentials, ...ask(from) }).catch(away);
      if (answer.error) throw failure(answer.status, answer.error, answer.headers);
      const { token: accessToken, refresh_token: refreshToken, expires_in, ...rest } = answer.body;
      const lifetime = expires_in * 1_000;
      return { accessToken, refreshToken, lifetime, mustChangePassword: rest.must_change_password === true };
    },

    /** undefined: the session has ended. Throws 503. */
    async renew(refreshToken: string, from: From): Promise<Tokens | undefined> {
      const body = { grant_type: 'refresh_token', refresh_token: refreshToken };
      const answer = await call(url, token, { body, ...ask(from) }).catch(away);
      if (answer.error?.error === 'invalid_grant') return undefined;
      if (answer.error) throw unavailable('The session cannot be renewed at the moment.', answer.error);
      const { access_token: accessToken, refresh_token: next = refreshToken, expires_in } = answer.body;
      return { accessToken, refreshToken: next, lifetime: expires_in * 1_000 };
    },

    /** Ends the session as far as auth can be reached: here it is over anyway. */
    async logOut(accessToken: string, from: From): Promise<void> {
      await call(url, logout, { token: accessToken, ...ask(from) }).catch(() => undefined);
    },
  };
}
export type AuthClient = ReturnType<typeof createAuthClient>;
