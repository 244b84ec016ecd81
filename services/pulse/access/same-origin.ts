import { HttpError } from '@content-platform/chassis';

/**
 * Throws 403 unless a page of the platform sent the request: by Origin, or by Sec-Fetch-Site (W3C Fetch Metadata), which
 * no page can set and which holds for every name that the platform is reached by.
 */
export function createOriginCheck(publicUrl: string) {
  const { origin } = new URL(publicUrl);
  return (header: (name: string) => string | undefined): void => {
    if (header('origin') === origin || header('sec-fetch-site') === 'same-origin') return;
    throw new HttpError('other_origin', 'The request came from another site. Open /pulse and try again.');
  };
}
export type OriginCheck = ReturnType<typeof createOriginCheck>;
