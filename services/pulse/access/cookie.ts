import { parseCookie, stringifySetCookie } from 'cookie';
import { HttpError } from '@content-platform/chassis';
import { sessionMs } from './sessions.ts';

/**
 * The cookie of a viewer's session. Under an https URL no other host of the domain can set it, because of the prefix
 * `__Host-`, for which browsers require the path /. The gateway passes it to pulse and identity logins only.
 */
export function createCookie(publicUrl: string) {
  const secure = publicUrl.startsWith('https:');
  const name = secure ? '__Host-pulse' : 'pulse';
  const path = secure ? '/' : '/pulse';
  const shape = { name, httpOnly: true, secure, sameSite: 'strict', path } as const;
  return {
    read: (header: string | undefined): string | undefined => parseCookie(header ?? '')[name],
    set: (value: string): string => stringifySetCookie({ ...shape, value, maxAge: sessionMs / 1_000 }),
    clear: (): string => stringifySetCookie({ ...shape, value: '', maxAge: 0 }),
  };
}
export type Cookie = ReturnType<typeof createCookie>;

/** Throws 403 unless a page of the platform sent the request. No page can set these headers (W3C Fetch Metadata). */
export function createOriginCheck(publicUrl: string) {
  const { origin } = new URL(publicUrl);
  return (header: (name: string) => string | undefined): void => {
    if (header('origin') === origin || header('sec-fetch-site') === 'same-origin') return;
    throw new HttpError('other_origin', `The request came from another site. Use ${origin}/pulse only.`);
  };
}
