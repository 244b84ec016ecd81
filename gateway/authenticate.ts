import { authorize, bearerToken, HttpError, type TokenVerifier } from '@content-platform/chassis';
import type { Step } from './exchange.ts';
import type { RateLimits } from './rate-limit.ts';

/**
 * Asks for the access token where the contract does: 401 without a valid one, 403 when it does not allow this. Who sends
 * many tokens that are not valid is answered 429 after a while.
 */
export function authenticate(tokens: TokenVerifier, limits: RateLimits): Step {
  return async (request, response, next) => {
    const { locals: exchange } = response;
    const endpoint = exchange.endpoint!;
    if (endpoint.access === 'public') return next();
    const token = bearerToken(request.headers.authorization);
    exchange.caller = await tokens.verify(token).catch(async (error: unknown) => {
      if (error instanceof HttpError && error.status === 401) await limits.countBadToken(exchange);
      throw error;
    });
    authorize(exchange.caller, endpoint);
    next();
  };
}
