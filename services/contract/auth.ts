import { z } from 'zod';
import { defineEndpoint } from './endpoint.ts';
import { id, text, time } from './schemas.ts';

export const roles = ['user', 'sre', 'admin'] as const;
export type Role = (typeof roles)[number];

const tokenType = z.literal('Bearer');
const noStore = { 'Cache-Control': 'no-store' };

const user = z.strictObject({ id, email: z.string(), name: z.string(), created_at: time });

export const login = defineEndpoint({
  name: 'login',
  method: 'POST',
  path: '/api/login',
  service: 'auth',
  access: 'public',
  rateLimit: { requests: 60, seconds: 60, guessing: true },
  summary: 'Log in with email and password.',
  body: {
    kinds: ['json'],
    maxBytes: 16_384,
    schema: z.strictObject({ email: text(1, 254), password: text(1, 1024) }),
  },
  responses: {
    200: {
      description: 'Logged in. `expires_in` is in seconds.',
      schema: z.strictObject({ token: z.string(), token_type: tokenType, expires_in: z.int(), user }),
      headers: noStore,
    },
  },
  errors: ['invalid_credentials'],
});

export const token = defineEndpoint({
  name: 'token',
  method: 'POST',
  path: '/api/token',
  service: 'auth',
  access: 'public',
  rateLimit: { requests: 60, seconds: 60, guessing: true },
  summary: 'Get an access token for a machine client (RFC 6749 §4.4).',
  headers: {
    Authorization:
      'Basic, the client id and secret form-encoded (RFC 6749 §2.3.1); or send them in the body.',
  },
  body: {
    kinds: ['form', 'json'],
    maxBytes: 16_384,
    // RFC 6749 §3.2: parameters that are not known are ignored, so this is the one body that is not strict.
    schema: z.object({
      grant_type: text(1, 100),
      client_id: text(1, 100).optional(),
      client_secret: text(1, 1024).optional(),
      scope: text(0, 1000).optional(),
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
      }),
      headers: noStore,
    },
  },
  errors: ['unsupported_grant_type', 'invalid_scope', 'invalid_client'],
});

export const me = defineEndpoint({
  name: 'me',
  method: 'GET',
  path: '/api/me',
  service: 'auth',
  access: 'user',
  rateLimit: { requests: 600, seconds: 60 },
  summary: 'Who the access token belongs to.',
  responses: {
    200: {
      description: 'The user.',
      schema: z.strictObject({ ...user.shape, roles: z.array(z.enum(roles)) }),
    },
  },
});

export const jwks = defineEndpoint({
  name: 'jwks',
  method: 'GET',
  path: '/.well-known/jwks.json',
  service: 'auth',
  access: 'public',
  rateLimit: { requests: 600, seconds: 60 },
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
