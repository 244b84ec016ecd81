import { HttpError } from '@content-platform/chassis';
import { scopesOf } from '../rights.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { Grant } from './grant.ts';

/** RFC 6749 §6. The clients are apps and pages, which can keep no secret: the token alone says who it is. */
export function refreshToken({ sessions }: { sessions: Sessions }): Grant {
  return async ({ body, address }) => {
    if (body.refresh_token === undefined) {
      throw new HttpError('invalid_request', 'The request is not valid.', {
        details: [{ path: 'body.refresh_token', message: 'Is missing.' }],
      });
    }
    const { user, ...pair } = await sessions.refresh(body.refresh_token, address);
    return { ...pair, scopes: scopesOf(user.roles) };
  };
}
