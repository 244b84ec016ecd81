import { HttpError, type Handler } from '@content-platform/chassis';
import type { GrantType, token as contract } from '@content-platform/contract';
import { accessTokenLifetime } from '../access-token-lifetime.ts';
import type { AuthContext } from '../context.ts';
import { clientCredentials } from '../grants/client-credentials.ts';
import type { Grant } from '../grants/grant.ts';
import { identityCode } from '../grants/identity-code.ts';
import { refreshToken as refresh } from '../grants/refresh-token.ts';

/** RFC 6749 §3.2. */
export function token(context: AuthContext): Handler<typeof contract> {
  const grants: Record<GrantType, Grant> = {
    client_credentials: clientCredentials(context),
    refresh_token: refresh(context),
    'urn:content-platform:identity-code': identityCode(context),
  };
  const isOffered = (type: string): type is GrantType => Object.hasOwn(grants, type);

  return async (call) => {
    const { grant_type: type } = call.body;
    if (!isOffered(type)) {
      const known = Object.keys(grants).join(', ');
      throw new HttpError('unsupported_grant_type', `The grant type must be one of ${known}.`);
    }
    const { accessToken, scopes, refreshToken } = await grants[type](call);
    return {
      status: 200,
      body: {
        access_token: accessToken,
        token_type: 'Bearer',
        expires_in: accessTokenLifetime,
        scope: scopes.join(' '),
        ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }),
      },
      // RFC 6749 §5.1 requires this header beside Cache-Control.
      headers: { Pragma: 'no-cache' },
    };
  };
}
