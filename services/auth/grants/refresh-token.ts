import type { AuthContext } from '../context.ts';
import { scopesOf } from '../access-tokens.ts';
import { type Grant, required } from './grant.ts';

/** RFC 6749 §6. Apps and web pages cannot keep a client secret, so the refresh token alone authenticates the user. */
export function refreshToken({ sessions }: AuthContext): Grant {
  return async ({ body, address }) => {
    const { user, ...pair } = await sessions.refresh(required(body, 'refresh_token'), address);
    return { ...pair, scopes: scopesOf(user.roles) };
  };
}
