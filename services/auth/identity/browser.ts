import { timingSafeEqual } from 'node:crypto';
import { parseCookie, stringifySetCookie } from 'cookie';
import { isToken, randomToken, sha256 } from '../sessions/opaque-token.ts';
import { loginSeconds } from './login-store.ts';
import { isLoopback } from './settings.ts';

/**
 * Binds a login to the browser that began it, so that nobody is logged in with somebody else's answer (RFC 9700 §4.7.1).
 * A browser keeps its secret while logins are under way: two tabs do not disturb each other. `__Host-` keeps other
 * hosts of the domain from setting it (RFC 6265bis §4.1.3.2); browsers want https for that, so it is left out where
 * `publicUrl` is http on loopback.
 */
export function createBrowserCookie(publicUrl: string) {
  const plain = publicUrl.startsWith('http:') && isLoopback(publicUrl);
  const name = plain ? 'identity-login' : '__Host-identity-login';

  function secretIn(header: string | undefined): string | undefined {
    const value = parseCookie(header ?? '')[name];
    return value !== undefined && isToken(value) ? value : undefined;
  }

  return {
    /** For a browser that sent this Cookie header: the cookie to set, and what is kept of its secret. */
    give(header: string | undefined): { cookie: string; hash: Buffer } {
      const secret = secretIn(header) ?? randomToken();
      const cookie = stringifySetCookie({
        name,
        value: secret,
        httpOnly: true,
        secure: !plain,
        sameSite: 'lax',
        path: '/',
        maxAge: loginSeconds,
      });
      return { cookie, hash: sha256(secret) };
    },

    /** Whether the Cookie header comes from the browser that was given the secret. */
    isSame(header: string | undefined, hash: Buffer): boolean {
      const secret = secretIn(header);
      return secret !== undefined && timingSafeEqual(sha256(secret), hash);
    },
  };
}
