import { HttpError, unavailable } from '@content-platform/chassis';
import { login, loginMfa, logout, token, type ErrorEnvelope } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';

/** Tokens that auth returned for a password or a refresh token. */
export interface Tokens {
  accessToken: string;
  refreshToken: string;
  lifetimeMs: number;
}

/** Headers that identify the viewer: auth limits guesses by IP address and names the session's device. */
export type ClientHeaders = Record<string, string>;

const timeoutMs = 5_000;
const unreachable = (cause: unknown) => unavailable('Signing in is unavailable. Try again later.', cause);

/** Passes on errors that the viewer can act on; every other error is a 503. */
function failure(status: number, error: ErrorEnvelope, headers: Headers): HttpError {
  if (status === 401) return new HttpError('invalid_credentials', error.message);
  if (status === 429) {
    const seconds = headers.get('retry-after') ?? '1';
    const message = `Too many failed attempts. Try again in ${seconds} seconds.`;
    return new HttpError('rate_limited', message, { headers: { 'Retry-After': seconds } });
  }
  return unreachable(error);
}

export function createAuthClient(url: string) {
  const optionsFor = (headers: ClientHeaders) => ({ headers, signal: AbortSignal.timeout(timeoutMs) });
  const rethrow = (cause: unknown) => Promise.reject(unreachable(cause));

  return {
    /**
     * Logs in. `code`: of the second factor, or a recovery code. Throws 401 `invalid_credentials`, 401 `mfa_required`
     * if the code is missing, 429 and 503.
     */
    async logIn(
      { code, ...credentials }: { email: string; password: string; code?: string | undefined },
      from: ClientHeaders,
    ) {
      let answer = await call(url, login, { body: credentials, ...optionsFor(from) }).catch(rethrow);
      const mfaToken = answer.error?.details?.find(({ path }) => path === 'mfa_token')?.message;
      if (mfaToken !== undefined) {
        if (!code) throw new HttpError('mfa_required', 'Enter the code of your authenticator app, too.');
        // Apps show the six digits in two groups.
        const digits = code.replace(/\s/g, '');
        const proof = /^\d{6}$/.test(digits) ? { code: digits } : { recovery_code: code };
        const body = { mfa_token: mfaToken, ...proof };
        answer = await call(url, loginMfa, { body, ...optionsFor(from) }).catch(rethrow);
      }
      if (answer.error) throw failure(answer.status, answer.error, answer.headers);
      const { token: accessToken, refresh_token: refreshToken, expires_in, ...rest } = answer.body;
      const mustChangePassword = rest.must_change_password === true;
      return { accessToken, refreshToken, lifetimeMs: expires_in * 1_000, mustChangePassword };
    },

    /** Returns new tokens; undefined: the session has ended. Throws 503. */
    async renew(refreshToken: string, from: ClientHeaders): Promise<Tokens | undefined> {
      const body = { grant_type: 'refresh_token', refresh_token: refreshToken };
      const answer = await call(url, token, { body, ...optionsFor(from) }).catch(rethrow);
      if (answer.error?.error === 'invalid_grant') return undefined;
      if (answer.error) throw unavailable('The session cannot be renewed. Try again later.', answer.error);
      const { access_token: accessToken, refresh_token: next = refreshToken, expires_in } = answer.body;
      return { accessToken, refreshToken: next, lifetimeMs: expires_in * 1_000 };
    },

    /** Ends the session in auth. Ignores errors, because the viewer's session here ends anyway. */
    async logOut(accessToken: string, from: ClientHeaders): Promise<void> {
      await call(url, logout, { token: accessToken, ...optionsFor(from) }).catch(() => undefined);
    },
  };
}
export type AuthClient = ReturnType<typeof createAuthClient>;
