import { HttpError, invalidFields, type Handler } from '@content-platform/chassis';
import type { identityLogin as contract } from '@content-platform/contract';
import { buildAuthorizationUrl, calculatePKCECodeChallenge } from 'openid-client';
import { IdentityFailure } from '../identity/failure.ts';
import type { AuthContext } from '../context.ts';
import { randomToken, sha256 } from '../sessions/opaque-token.ts';

/** Accepts configured URLs only (RFC 9700 §2.1); otherwise attackers could redirect codes to themselves. */
function checkReturnTo(returnTo: string, allowed: readonly string[]): void {
  if (allowed.includes(returnTo)) return;
  throw invalidFields([
    { path: 'query.return_to', message: 'Is not one of the addresses in IDENTITY_RETURN_TO.' },
  ]);
}

function unavailable(error: unknown): never {
  if (!(error instanceof IdentityFailure)) throw error;
  const message = 'The identity service cannot be reached, or does not answer as one.';
  throw new HttpError('identity_unavailable', message, { cause: error });
}

/** Redirects the browser to the identity provider: code flow with PKCE, state and nonce (RFC 9700 §2.1.1, RFC 7636). */
export function identityLogin({ identity, database }: AuthContext): Handler<typeof contract> {
  return async ({
    query: { return_to: returnTo, code_challenge: codeChallenge, state: clientState },
    header,
  }) => {
    checkReturnTo(returnTo, identity.returnTo);
    const configuration = await identity.provider.configuration().catch(unavailable);
    const [state, nonce, codeVerifier] = [randomToken(), randomToken(), randomToken()];
    const { cookie, hash: browserHash } = identity.cookie.issue(header('cookie'));
    const login = { browserHash, nonce, codeVerifier, returnTo, clientState, codeChallenge };
    await database.identityLogins.add(sha256(state), login);
    const address = buildAuthorizationUrl(configuration, {
      redirect_uri: identity.redirectUri,
      scope: 'openid email profile',
      state,
      nonce,
      code_challenge: await calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256',
    });
    return { status: 302, headers: { Location: address.href, 'Set-Cookie': cookie } };
  };
}
