import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Allowlist } from './allowlist.ts';
import type { Step } from './exchange.ts';

const exposed = 'ETag, Retry-After, X-Cache, X-Request-Id';
const common = ['Authorization', 'Content-Type', 'X-Request-Id'];
const preflightSeconds = '600';

/** What the page that asks must be told to read a reply; undefined where its origin is none of `origins`. */
export type CorsHeaders = (request: IncomingMessage) => OutgoingHttpHeaders | undefined;

export function createCorsHeaders(origins: readonly string[]): CorsHeaders {
  const allowed = new Set(origins);
  return ({ headers: { origin } }) =>
    origin === undefined || !allowed.has(origin)
      ? undefined
      : { 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': exposed };
}

/**
 * Lets pages of allowed origins call the API, and answers their preflights for paths of the contract. Tokens travel in
 * Authorization, so there are no credentials to allow. Other origins get no CORS header, and their browsers refuse.
 */
export function cors(headersFor: CorsHeaders, allowlist: Allowlist): Step {
  return (request, response, next) => {
    // Also for those who get nothing: a cache must not hand their reply to an origin that is allowed.
    response.vary('Origin');
    const headers = headersFor(request);
    if (!headers) return next();
    response.set(headers);
    const isPreflight =
      request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined;
    const methods = allowlist(response.locals.path);
    if (!isPreflight || !methods) return next();
    const own = [...methods.values()].flatMap(({ headers: asked = {} }) => Object.keys(asked));
    response.set({
      'Access-Control-Allow-Methods': [...methods.keys()].join(', '),
      'Access-Control-Allow-Headers': [...new Set([...common, ...own])].join(', '),
      'Access-Control-Max-Age': preflightSeconds,
    });
    response.status(204).end();
  };
}
