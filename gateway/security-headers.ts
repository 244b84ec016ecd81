import type { IncomingMessage, ServerResponse } from 'node:http';
import helmet from 'helmet';

const oneYear = 31_536_000;

/** Sets the headers that tell browsers what a reply may not do. HSTS only when clients come by https. */
export function createSecurityHeaders(publicUrl: string) {
  const set = helmet({
    // Replies of an API are data: a browser that shows one may load and run nothing. Pages set their own.
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    strictTransportSecurity: publicUrl.startsWith('https:') && { maxAge: oneYear, includeSubDomains: false },
  });
  return (request: IncomingMessage, response: ServerResponse): void =>
    set(request, response, () => undefined);
}
