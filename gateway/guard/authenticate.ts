import { authorize, bearerToken, HttpError, type TokenVerifier } from '@content-platform/chassis';
import type { Middleware } from '../request-context.ts';
import type { RateLimits } from './rate-limit.ts';

/**
 * Verifies the access token of endpoints that need one. Throws 401 without a valid token, 403 if the token does not allow
 * the request, and 429 for too many invalid tokens from one address.
 */
export function authenticate(tokens: TokenVerifier, limits: RateLimits): Middleware {
  return async (request, response, next) => {
    const { locals: context } = response;
    const endpoint = context.endpoint!;
    if (endpoint.access === 'public') return next();
    const token = bearerToken(request.headers.authorization);
    context.caller = await tokens.verify(token).catch(async (error: unknown) => {
      if (error instanceof HttpError && error.status === 401) await limits.countBadToken(context);
      throw error;
    });
    authorize(context.caller, endpoint);
    next();
  };
}
