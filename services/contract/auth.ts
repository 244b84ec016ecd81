import { z } from 'zod';
import { user } from './accounts.ts';
import { endpointsWith, jsonBody, optionalJsonBody } from './endpoint.ts';
import { multiLineText } from './schemas.ts';

const tokenType = z.literal('Bearer');
const noStore = { 'Cache-Control': 'no-store' };

const define = endpointsWith({ service: 'auth' });

export const login = define('login', 'POST', '/api/login', {
  access: 'public',
  latencyClass: 'login',
  rateLimit: { requests: 60, seconds: 60, guessing: true },
  summary: 'Log in with email and password.',
  body: jsonBody(
    z.strictObject({
      email: multiLineText(1, 254).normalize('NFC'),
      password: multiLineText(1, 1024),
    }),
  ),
  responses: {
    200: {
      description:
        'Logged in. `expires_in` is in seconds. With `must_change_password` the token opens /api/password, /api/logout and /api/me alone.',
      schema: z.strictObject({
        token: z.string(),
        token_type: tokenType,
        expires_in: z.int(),
        refresh_token: z.string(),
        user,
        must_change_password: z.literal(true).optional(),
      }),
      headers: noStore,
    },
  },
  errors: ['invalid_credentials'],
});

/** Grant types in the documents; any other type is a 400 `unsupported_grant_type`. */
export const grantTypes = [
  'client_credentials',
  'refresh_token',
  'urn:content-platform:identity-code',
] as const;
export type GrantType = (typeof grantTypes)[number];

export const token = define('token', 'POST', '/api/token', {
  access: 'public',
  latencyClass: 'login',
  // All users behind one IP address share the default limit; the service itself limits guesses of client secrets.
  summary:
    'Get an access token: for a machine client (RFC 6749 §4.4), with a refresh token (§6), which is replaced, or with the code of a login at the identity service (grant urn:content-platform:identity-code).',
  headers: {
    Authorization:
      'Basic, the client id and secret form-encoded (RFC 6749 §2.3.1); or send them in the body.',
  },
  body: {
    kinds: ['form', 'json'],
    maxBytes: 16_384,
    // RFC 6749 §3.2: unknown parameters are ignored, so that only this body is not strict.
    schema: z.object({
      grant_type: multiLineText(1, 100).meta({ enum: [...grantTypes] }),
      client_id: multiLineText(1, 100).optional(),
      client_secret: multiLineText(1, 1024).optional(),
      scope: multiLineText(0, 1000).optional(),
      refresh_token: multiLineText(1, 200).optional(),
      code: multiLineText(1, 200).optional(),
      code_verifier: multiLineText(1, 200).optional(),
    }),
  },
  invalidBody: 'invalid_request',
  responses: {
    200: {
      description: 'The access token. `expires_in` is in seconds.',
      schema: z.strictObject({
        access_token: z.string(),
        token_type: tokenType,
        expires_in: z.int(),
        scope: z.string(),
        refresh_token: z.string().optional(),
      }),
      headers: noStore,
    },
  },
  errors: ['unsupported_grant_type', 'invalid_scope', 'invalid_client', 'invalid_grant'],
});

export const logout = define('logout', 'POST', '/api/logout', {
  access: 'user',
  beforePasswordChange: true,
  summary: 'End this session. Its tokens are refused everywhere within a second.',
  body: optionalJsonBody(
    z.strictObject({
      fcm_token: multiLineText(0, 4096).nullish().meta({
        description: 'The push token of this device, which shall get no messages any more; if it has one.',
      }),
    }),
  ),
  responses: { 204: { description: 'Logged out.' } },
});

export const jwks = define('jwks', 'GET', '/.well-known/jwks.json', {
  access: 'public',
  summary: 'The public keys that access tokens are signed with (RFC 7517).',
  responses: {
    200: {
      description: 'The key set.',
      schema: z.strictObject({
        keys: z.array(
          z.strictObject({
            kty: z.literal('RSA'),
            use: z.literal('sig'),
            alg: z.literal('RS256'),
            kid: z.string(),
            n: z.string(),
            e: z.string(),
          }),
        ),
      }),
      headers: { 'Cache-Control': 'public, max-age=300' },
    },
  },
});
