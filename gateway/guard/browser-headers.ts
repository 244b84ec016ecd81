import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import helmet from 'helmet';
import type { Step } from '../request-context.ts';
import type { Allowlist } from './access.ts';

const oneYearSeconds = 31_536_000;

/** Returns helmet's security headers for browsers; HSTS only if `publicUrl` is https. */
export function securityHeaders(publicUrl: string, includeSubDomains: boolean): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  const recorder = {
    setHeader: (name: string, value: string) => void (headers[name.toLowerCase()] = value),
    removeHeader: () => undefined,
  } as unknown as ServerResponse;
  const set = helmet({
    // Replies of an API are data: a browser that shows a reply must load and run nothing. Pages set their own policy.
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    xFrameOptions: { action: 'deny' },
    strictTransportSecurity: publicUrl.startsWith('https:') && {
      maxAge: oneYearSeconds,
      includeSubDomains,
    },
  });
  set({} as IncomingMessage, recorder, () => undefined);
  return headers;
}

const exposed = 'Content-Disposition, Content-Range, ETag, Retry-After, X-Cache, X-Request-Id';
const common = ['Authorization', 'Content-Type', 'X-Request-Id'];
const preflightSeconds = '600';

/** Returns the headers that let the request's page read the reply; undefined if its origin is not allowed. */
export type CorsHeaders = (request: IncomingMessage) => OutgoingHttpHeaders | undefined;

export function createCorsHeaders(origins: readonly string[]): CorsHeaders {
  const allowed = new Set(origins);
  return ({ headers: { origin } }) =>
    origin === undefined || !allowed.has(origin)
      ? undefined
      : { 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': exposed };
}

/** Lets pages of allowed origins call the API, and answers preflights. No credentials: tokens are in Authorization. */
export function cors(headersFor: CorsHeaders, allowlist: Allowlist): Step {
  return (request, response) => {
    const { replyHeaders, path } = response.locals;
    // Sent for every origin: a cache must not return a reply without CORS headers to an allowed origin.
    replyHeaders.vary = 'Origin';
    const headers = headersFor(request);
    if (!headers) return;
    Object.assign(replyHeaders, headers);
    const isPreflight =
      request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined;
    const methods = allowlist(path);
    if (!isPreflight || !methods) return;
    const endpointHeaders = [...methods.values()].flatMap(({ headers: asked = {} }) => Object.keys(asked));
    response.writeHead(204, {
      ...replyHeaders,
      'Access-Control-Allow-Methods': [...methods.keys()].join(', '),
      'Access-Control-Allow-Headers': [...new Set([...common, ...endpointHeaders])].join(', '),
      'Access-Control-Max-Age': preflightSeconds,
    });
    response.end();
    return false;
  };
}
