import {
  authorizationCodeGrant,
  AuthorizationResponseError,
  ClientError,
  type Configuration,
  fetchUserInfo,
  type IDToken,
  ResponseBodyError,
  type UserInfoResponse,
  WWWAuthenticateChallengeError,
} from 'openid-client';
import type { identityCallback, IdentityError, Query } from '@content-platform/contract';
import { IdentityFailure } from './failure.ts';
import type { IdentityLogin } from './stores.ts';

/** Errors of RFC 6749 §4.1.2.1 and OpenID Connect Core §3.1.2.6 that concern the user. */
const refusals = /^(access_denied|(login|interaction|consent|account_selection)_required)$/;

/** Error codes of openid-client for tokens that it rejects. */
const tokenProblems = [
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_UNSUPPORTED_OPERATION',
];

function codeOf(error: unknown): IdentityError {
  if (error instanceof AuthorizationResponseError) {
    return refusals.test(error.error) ? 'access_denied' : 'identity_unavailable';
  }
  if (error instanceof ResponseBodyError) {
    return error.error === 'invalid_grant' ? 'identity_code_refused' : 'identity_unavailable';
  }
  const isTokenProblem = error instanceof ClientError && tokenProblems.includes(error.code ?? '');
  return isTokenProblem ? 'identity_token_invalid' : 'identity_unavailable';
}

function fail(error: unknown): never {
  let reason = error;
  // For the log. An expired client secret has a description, and with Basic a challenge (RFC 6749 §5.2).
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError)
    reason = `it returned ${error.error} ${String(error.error_description ?? '').slice(0, 500)}`.trimEnd();
  if (error instanceof WWWAuthenticateChallengeError)
    reason = `it returned ${error.status} ${JSON.stringify(error.cause)}`;
  throw new IdentityFailure(codeOf(error), reason);
}

/** Checks that the issuer is the requested one. A provider that announces `iss` must send it (RFC 9207 §2.4). */
function checkIssuer(configuration: Configuration, iss: string | undefined): void {
  const { issuer, authorization_response_iss_parameter_supported: named } = configuration.serverMetadata();
  if (iss === issuer || (iss === undefined && !named)) return;
  throw new IdentityFailure('identity_issuer_mismatch', `the response names ${iss ?? 'no issuer'}`);
}

/**
 * Adds claims of userinfo. The email and `email_verified` stay together: one source must not verify the other's email.
 */
export function mergeClaims(idToken: IDToken, userInfo: UserInfoResponse): IDToken {
  const fromUserInfo =
    idToken.email === undefined || (idToken.email === userInfo.email && !('email_verified' in idToken));
  const { email, email_verified } = fromUserInfo ? userInfo : idToken;
  return { ...userInfo, ...idToken, email, email_verified } as IDToken;
}

/** Exchanges the code for the ID token, which openid-client checks, and claims. Rejects with IdentityFailure. */
export async function exchangeCode(
  configuration: Configuration,
  redirectUri: string,
  response: Query<typeof identityCallback>,
  login: Pick<IdentityLogin, 'nonce' | 'codeVerifier'>,
): Promise<{ idToken: string; claims: IDToken }> {
  checkIssuer(configuration, response.iss);
  const callback = new URL(redirectUri);
  for (const [name, value] of Object.entries(response)) {
    if (value !== undefined) callback.searchParams.set(name, value);
  }
  const tokens = await authorizationCodeGrant(configuration, callback, {
    expectedState: response.state,
    expectedNonce: login.nonce,
    pkceCodeVerifier: login.codeVerifier,
    idTokenExpected: true,
  }).catch(fail);
  const claims = tokens.claims()!;
  // OpenID Connect Core §3.1.3.7 (5); the library checks azp only if there are several audiences.
  if (claims.azp !== undefined && claims.azp !== configuration.clientMetadata().client_id) {
    throw new IdentityFailure('identity_token_invalid', 'the azp of the ID token is another client');
  }
  if (!configuration.serverMetadata().userinfo_endpoint) return { idToken: tokens.id_token!, claims };
  // §5.4: the code flow returns the claims of the scopes profile and email here. §5.3.2: the subject must be the same.
  const more = await fetchUserInfo(configuration, tokens.access_token, claims.sub).catch(fail);
  return { idToken: tokens.id_token!, claims: mergeClaims(claims, more) };
}
