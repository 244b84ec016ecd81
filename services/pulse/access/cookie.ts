import { parseCookie, stringifySetCookie } from 'cookie';
import { sessionMs } from './sessions.ts';

const name = 'pulse';

/** The cookie that a viewer's browser sends to the page and to nothing else; by https alone where clients come so. */
export function createCookie(publicUrl: string) {
  const shape = {
    name,
    httpOnly: true,
    secure: publicUrl.startsWith('https:'),
    sameSite: 'strict',
    path: '/pulse',
  } as const;
  return {
    /** Its value in a Cookie header. */
    read: (header: string | undefined): string | undefined => parseCookie(header ?? '')[name],
    /** As Set-Cookie. */
    give: (value: string): string => stringifySetCookie({ ...shape, value, maxAge: sessionMs / 1_000 }),
    /** As Set-Cookie. */
    take: (): string => stringifySetCookie({ ...shape, value: '', maxAge: 0 }),
  };
}
export type Cookie = ReturnType<typeof createCookie>;
