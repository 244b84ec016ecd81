import { parseCookie, stringifySetCookie } from 'cookie';
import { sessionMs } from './sessions.ts';

const name = 'pulse';

/** The cookie of a viewer's session, sent to /pulse only and, if `publicUrl` is https, over https only. */
export function createCookie(publicUrl: string) {
  const shape = {
    name,
    httpOnly: true,
    secure: publicUrl.startsWith('https:'),
    sameSite: 'strict',
    path: '/pulse',
  } as const;
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
