import type { Allowlist } from './allowlist.ts';
import type { Step } from './exchange.ts';

const exposed = 'ETag, Retry-After, X-Cache, X-Request-Id';
const common = ['Authorization', 'Content-Type', 'X-Request-Id'];
const preflightSeconds = '600';

/**
 * Lets pages of `origins` call the API, and answers their preflights for paths of the contract. Tokens travel in
 * Authorization, so there are no credentials to allow. Other origins get no CORS header, and their browsers refuse.
 */
export function cors(origins: readonly string[], allowlist: Allowlist): Step {
  const allowed = new Set(origins);
  return (request, response, next) => {
    // Also for those who get nothing: a cache must not hand their reply to an origin that is allowed.
    response.vary('Origin');
    const { origin } = request.headers;
    if (origin === undefined || !allowed.has(origin)) return next();
    response.set({ 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': exposed });
    const isPreflight =
      request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined;
    const methods = allowlist(response.locals.path);
    if (!isPreflight || !methods) return next();
    const own = [...methods.values()].flatMap(({ headers = {} }) => Object.keys(headers));
    response.set({
      'Access-Control-Allow-Methods': [...methods.keys()].join(', '),
      'Access-Control-Allow-Headers': [...new Set([...common, ...own])].join(', '),
      'Access-Control-Max-Age': preflightSeconds,
    });
    response.status(204).end();
  };
}
