import { timingSafeEqual } from 'node:crypto';
import { parseCookie, stringifySetCookie } from 'cookie';
import { isToken, randomToken, sha256 } from '../sessions/opaque-token.ts';
import { loginSeconds } from './stores.ts';
import { isLoopback } from './settings.ts';

/**
 * Binds a login to its browser, so that an attacker cannot log a victim in with the attacker's own response (RFC 9700
 * §4.7.1). A browser keeps its secret, for logins in two tabs. `__Host-` prevents other hosts of the domain from
 * setting the cookie (RFC 6265bis §4.1.3.2), and needs https.
 */
export function createBrowserCookie(publicUrl: string) {
  const plain = publicUrl.startsWith('http:') && isLoopback(publicUrl);
  const name = plain ? 'identity-login' : '__Host-identity-login';

  function secretIn(header: string | undefined): string | undefined {
    const value = parseCookie(header ?? '')[name];
    return value !== undefined && isToken(value) ? value : undefined;
  }

  return {
    /** Returns the cookie to set for a browser that sent this Cookie header, and the hash of its secret to store. */
    issue(header: string | undefined): { cookie: string; hash: Buffer } {
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

    /** Returns whether the Cookie header contains the secret with this hash. */
    matches(header: string | undefined, hash: Buffer): boolean {
      const secret = secretIn(header);
      return secret !== undefined && timingSafeEqual(sha256(secret), hash);
    },
  };
}
