import { HttpError, type Handler } from '@content-platform/chassis';
import type { token as contract } from '@content-platform/contract';
import { accessTokenLifetime } from '../access-token-lifetime.ts';
import type { Grant } from '../grants/grant.ts';

/** RFC 6749 §3.2: `grants` by their grant_type. */
export function token({ grants }: { grants: Record<string, Grant> }): Handler<typeof contract> {
  return async (call) => {
    const { grant_type: type } = call.body;
    const grant = Object.hasOwn(grants, type) ? grants[type] : undefined;
    if (!grant) {
      const known = Object.keys(grants).join(', ');
      throw new HttpError('unsupported_grant_type', `The grant type must be one of ${known}.`);
    }
    const { accessToken, scopes, refreshToken } = await grant(call);
    return {
      status: 200,
      body: {
        access_token: accessToken,
        token_type: 'Bearer',
        expires_in: accessTokenLifetime,
        scope: scopes.join(' '),
        ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }),
      },
      // RFC 6749 §5.1 asks for it beside Cache-Control.
      headers: { Pragma: 'no-cache' },
    };
  };
}
