import { z } from 'zod';
import { user } from './accounts.ts';
import { endpointsWith, jsonBody, optionalJsonBody } from './endpoint.ts';
import { multiLineText, publicKey } from './schemas.ts';

const tokenType = z.literal('Bearer');
const noStore = { 'Cache-Control': 'no-store' };

const define = endpointsWith({ service: 'auth' });

export const loginReply = {
  description:
    'Logged in. `expires_in` is the lifetime of the access token in seconds. If `must_change_password` is true, the password is temporary: the token is valid only for /api/password, /api/logout, /api/{identity}/logout and GET /api/me.',
  schema: z.strictObject({
    token: z.string(),
    token_type: tokenType,
    expires_in: z.int(),
    refresh_token: z.string(),
    user,
    must_change_password: z.literal(true).optional(),
  }),
  headers: noStore,
};

export const login = define('login', 'POST', '/api/login', {
  access: 'public',
  latencyClass: 'login',
  rateLimit: { requests: 60, seconds: 60, guessing: true },
  summary: 'Log in with email and password.',
  body: jsonBody({ email: multiLineText(1, 254).trim().normalize('NFC'), password: multiLineText(1, 1024) }),
  responses: { 200: loginReply },
  errors: ['invalid_credentials', 'mfa_required'],
});

/** Supported grant types. Any other type returns 400 `unsupported_grant_type`. */
export const grantTypes = [
  'client_credentials',
  'refresh_token',
  'urn:content-platform:identity-code',
] as const;
export type GrantType = (typeof grantTypes)[number];

export const token = define('token', 'POST', '/api/token', {
  access: 'public',
  latencyClass: 'login',
  // Not a `guessing` limit: users behind one IP address share it, and the service itself limits guesses of client secrets.
  summary: 'Issue an access token.',
  description:
    'Supports three grants. `client_credentials`: for a machine client (RFC 6749 §4.4). `refresh_token`: replaces the refresh token (RFC 6749 §6). `urn:content-platform:identity-code`: redeems the code of an identity login.',
  headers: {
    Authorization:
      'Basic authentication with the form-encoded client ID and secret (RFC 6749 §2.3.1). Alternatively, send both in the body.',
  },
  body: {
    kinds: ['form', 'json'],
    maxBytes: 16_384,
    // RFC 6749 §3.2 requires that unknown parameters are ignored, so this body schema is not strict.
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
      description: 'The access token. `expires_in` is its lifetime in seconds.',
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
  errors: ['unsupported_grant_type', 'invalid_scope', 'invalid_client', 'invalid_grant', 'mfa_required'],
});

export const logout = define('logout', 'POST', '/api/logout', {
  access: 'user',
  beforePasswordChange: true,
  beforeMfaEnrollment: true,
  summary: 'Log out of this session.',
  description: 'All services refuse the tokens of the session within a second.',
  body: optionalJsonBody({
    fcm_token: multiLineText(0, 4096)
      .nullish()
      .describe('Push token of this device, which gets no more messages.'),
  }),
  responses: { 204: { description: 'Logged out.' } },
});

export const jwks = define('jwks', 'GET', '/.well-known/jwks.json', {
  access: 'public',
  summary: 'List public keys for verifying access tokens.',
  description: 'Returns a JSON Web Key Set (RFC 7517).',
  responses: {
    200: {
      description: 'The key set.',
      schema: z.strictObject({ keys: z.array(z.strictObject(publicKey.shape)) }),
      headers: { 'Cache-Control': 'public, max-age=300' },
    },
  },
});
