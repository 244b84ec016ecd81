import { parseCookie, stringifySetCookie } from 'cookie';
import { sessionMs } from './sessions.ts';

/**
 * The cookie of a viewer's session. Under an https URL its name has the prefix `__Host-`, so that no other host of the
 * domain can set it; browsers require the path / for that. The gateway passes it to pulse only.
 */
export function createCookie(publicUrl: string) {
  const secure = publicUrl.startsWith('https:');
  const name = secure ? '__Host-pulse' : 'pulse';
  const path = secure ? '/' : '/pulse';
  const shape = { name, httpOnly: true, secure, sameSite: 'strict', path } as const;
  return {
    /** Returns the value in a Cookie header. */
    read: (header: string | undefined): string | undefined => parseCookie(header ?? '')[name],
    /** Returns the Set-Cookie header that sets the cookie. */
    give: (value: string): string => stringifySetCookie({ ...shape, value, maxAge: sessionMs / 1_000 }),
    /** Returns the Set-Cookie header that deletes the cookie. */
    take: (): string => stringifySetCookie({ ...shape, value: '', maxAge: 0 }),
  };
}
export type Cookie = ReturnType<typeof createCookie>;
