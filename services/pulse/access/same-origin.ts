import { HttpError } from '@content-platform/chassis';

/**
 * Throws 403 unless a page of ours sent the request: a browser says in Origin which page did, or in Sec-Fetch-Site, which
 * no page can set (W3C Fetch Metadata), that it has the origin it sends to, by whatever name that goes here.
 */
export function createOriginCheck(publicUrl: string) {
  const { origin } = new URL(publicUrl);
  return (header: (name: string) => string | undefined): void => {
    if (header('origin') === origin || header('sec-fetch-site') === 'same-origin') return;
    throw new HttpError(403, 'other_origin', 'This is for the page itself; open it at its own address.');
  };
}
export type OriginCheck = ReturnType<typeof createOriginCheck>;
