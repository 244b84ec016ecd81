import helmet from 'helmet';
import type { EarlyStep } from '../request-context.ts';

const oneYearSeconds = 31_536_000;

/** Creates the step that sets headers for browsers' protection; HSTS only if `publicUrl` is https. */
export function createSecurityHeaders(publicUrl: string): EarlyStep {
  const set = helmet({
    // Replies of an API are data: a browser that shows one must load and run nothing. Pages set their own policy.
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    xFrameOptions: { action: 'deny' },
    strictTransportSecurity: publicUrl.startsWith('https:') && {
      maxAge: oneYearSeconds,
      includeSubDomains: false,
    },
  });
  return (request, response) => set(request, response, () => undefined);
}
