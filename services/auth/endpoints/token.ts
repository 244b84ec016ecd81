import { HttpError, type Handler } from '@content-platform/chassis';
import type * as contract from '@content-platform/contract';
import { accessTokenLifetime, scopesOf } from '../access-tokens.ts';
import type { AuthContext } from '../context.ts';
import { clientCredentials } from '../grants/client-credentials.ts';
import { type Grant, required } from '../grants/grant.ts';
import { identityCode } from '../grants/identity-code.ts';

/** RFC 6749 §6. Apps and web pages cannot keep a client secret, so the refresh token alone authenticates the user. */
function refreshToken({ sessions }: AuthContext): Grant {
  return async ({ body, address }) => {
    const { user, ...pair } = await sessions.refresh(required(body, 'refresh_token'), address);
    return { ...pair, scopes: scopesOf(user.roles) };
  };
}

/** Issues tokens with the grant that `grant_type` names (RFC 6749 §3.2). */
export function token(context: AuthContext): Handler<typeof contract.token> {
  const grants: Record<contract.GrantType, Grant> = {
    client_credentials: clientCredentials(context),
    refresh_token: refreshToken(context),
    'urn:content-platform:identity-code': identityCode(context),
  };
  const isOffered = (type: string): type is contract.GrantType => Object.hasOwn(grants, type);

  return async (call) => {
    const { grant_type: type } = call.body;
    if (!isOffered(type)) {
      const known = Object.keys(grants).join(', ');
      throw new HttpError('unsupported_grant_type', `The grant type must be one of ${known}.`);
    }
    const { accessToken, scopes, refreshToken: refresh_token } = await grants[type](call);
    return {
      status: 200,
      body: {
        access_token: accessToken,
        token_type: 'Bearer',
        expires_in: accessTokenLifetime,
        scope: scopes.join(' '),
        ...(refresh_token === undefined ? {} : { refresh_token }),
      },
      // RFC 6749 §5.1 requires this header beside Cache-Control.
      headers: { Pragma: 'no-cache' },
    };
  };
}

export function jwks({ keys }: AuthContext): Handler<typeof contract.jwks> {
  return () => ({
    status: 200,
    body: { keys: keys.public },
    headers: { 'Cache-Control': 'public, max-age=300' },
  });
}
