import { createRemoteJWKSet, errors, jwtVerify } from 'jose';
import { z } from 'zod';
import { IdentityFailure } from './failure.ts';
import type { createProvider } from './provider.ts';

const event = 'http://schemas.openid.net/event/backchannel-logout';
const maxAgeSeconds = 300;
const toleranceSeconds = 60;
const fetchTimeoutMs = 3_000;

// OpenID Connect Back-Channel Logout 1.0 §2.4.
const claims = z
  .looseObject({
    iss: z.string(),
    jti: z.string().min(1).max(500),
    exp: z.number(),
    sub: z.string().min(1).max(255).optional(),
    sid: z.string().min(1).max(500).optional(),
    events: z.looseObject({ [event]: z.looseObject({}) }),
    // An ID token must not pass for a logout token.
    nonce: z.undefined().optional(),
  })
  .refine(({ sub, sid }) => sub !== undefined || sid !== undefined, 'Neither sub nor sid is present.');

export type LogoutToken = z.infer<typeof claims>;

/** Error codes of jose if the key set could not be read. The last one: the reply was not 200 or not JSON. */
const keySetProblems = ['ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID', 'ERR_JOSE_GENERIC'];

/** Checks logout tokens (OpenID Connect Back-Channel Logout 1.0 §2.6). Rejects with IdentityFailure. */
export function createLogoutTokens(provider: ReturnType<typeof createProvider>, clientId?: string) {
  let keySet: { uri: string; keys: ReturnType<typeof createRemoteJWKSet> } | undefined;

  function keysAt(uri: string) {
    if (keySet?.uri !== uri) {
      keySet = { uri, keys: createRemoteJWKSet(new URL(uri), { timeoutDuration: fetchTimeoutMs }) };
    }
    return keySet.keys;
  }

  return async (token: string): Promise<LogoutToken> => {
    const metadata = (await provider.configuration()).serverMetadata();
    const { issuer, jwks_uri: uri } = metadata;
    try {
      const { payload, protectedHeader } = await jwtVerify(token, keysAt(uri!), {
        issuer,
        audience: clientId!,
        algorithms: metadata.id_token_signing_alg_values_supported ?? ['RS256'],
        maxTokenAge: maxAgeSeconds,
        clockTolerance: toleranceSeconds,
        requiredClaims: ['exp'],
      });
      // The type header is only recommended, so it may be absent. A token with another type is not a logout token.
      if (!['logout+jwt', 'jwt', undefined].includes(protectedHeader.typ?.toLowerCase()))
        throw new errors.JWTInvalid('the type is not logout+jwt');
      return claims.parse(payload);
    } catch (error) {
      const isRefused = error instanceof errors.JOSEError && !keySetProblems.includes(error.code);
      const isBad = isRefused || error instanceof z.ZodError;
      throw new IdentityFailure(isBad ? 'identity_token_invalid' : 'identity_unavailable', error);
    }
  };
}
