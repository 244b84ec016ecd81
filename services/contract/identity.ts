import { z } from 'zod';
import { profile } from './accounts.ts';
import { endpointsWith, jsonBody } from './endpoint.ts';
import { queryText, multiLineText } from './schemas.ts';

/** Values of `error` after a failed callback. Codes are stable: add new ones, do not rename. */
export const identityErrors = {
  access_denied: 'the user or the identity provider denied the login',
  identity_unavailable: 'the identity provider is unavailable or refuses the platform as a client',
  identity_issuer_mismatch: 'the response comes from a different identity provider (RFC 9207)',
  identity_code_refused: 'the identity provider rejects the code or its PKCE verifier',
  identity_token_invalid: 'the ID token is malformed, expired or of another login, client or issuer',
  identity_email_missing: 'the identity provider returns no usable email address',
  identity_email_taken: 'another user has the email address, and the accounts may not be linked',
  identity_email_unverified: 'the identity provider has not verified the email address',
  identity_user_disabled: 'the user is disabled',
} as const;
export type IdentityError = keyof typeof identityErrors;

const params = z.strictObject({
  identity: multiLineText(1, 32).meta({
    description: 'Name of the identity provider: the value of IDENTITY_NAME.',
    pattern: '^[a-z][a-z0-9-]{0,31}$',
  }),
});
const errorList = Object.entries(identityErrors).map(([code, meaning]) => `\`${code}\`: ${meaning}`);

/** PKCE code challenge: SHA-256 of the verifier in base64url (RFC 7636 §4.2). Only the method S256 is supported. */
const codeChallenge = z.string().regex(/^[\w-]{43}$/, 'Must be a SHA-256 in base64url (RFC 7636 §4.2).');

const define = endpointsWith({ service: 'auth', params });

export const identityLogin = define('identityLogin', 'GET', '/api/:identity/login', {
  access: 'public',
  cookies: true,
  noHead: true,
  rateLimit: { requests: 60, seconds: 60 },
  summary: 'Start an identity login.',
  description: 'Open this URL in a browser. It redirects to the identity provider.',
  query: z.strictObject({
    return_to: queryText(1, 2000).describe('URL to return to after the login, one of IDENTITY_RETURN_TO.'),
    code_challenge: codeChallenge.describe(
      'base64url(SHA-256(verifier)); /api/token needs the verifier (PKCE).',
    ),
    state: queryText(1, 512).describe('Opaque value that `return_to` gets back.'),
  }),
  responses: {
    302: {
      description: 'Redirects to the identity provider.',
      headers: {
        Location: 'URL of the authorization endpoint with the login parameters.',
        'Set-Cookie': 'Cookie that binds the login to this browser for 10 minutes.',
      },
    },
  },
  errors: ['not_found', 'identity_login_disabled', 'identity_unavailable'],
});

export const identityCallback = define('identityCallback', 'GET', '/api/:identity/login/callback', {
  access: 'public',
  cookies: true,
  noHead: true,
  rateLimit: { requests: 60, seconds: 60 },
  summary: 'Complete an identity login.',
  description: 'The identity provider redirects the browser to this URL.',
  // RFC 6749 §4.1.2 requires that unknown parameters are ignored.
  query: z.object({
    state: queryText(1, 512),
    code: queryText(1, 4096).optional(),
    iss: queryText(1, 2000).optional(),
    error: queryText(1, 200).optional(),
  }),
  responses: {
    302: {
      description: [
        'Redirects to `return_to` with `state` and either `code` or `error`. The code is valid for 60 seconds at /api/token.',
        ...errorList,
      ].join(' '),
      headers: { Location: 'The `return_to` URL of the login with the parameters above.' },
    },
  },
  errors: [
    'not_found',
    'identity_login_disabled',
    'identity_login_unknown',
    'identity_login_expired',
    'identity_other_browser',
  ],
});

export const identityLogout = define('identityLogout', 'POST', '/api/:identity/logout', {
  access: 'user',
  beforePasswordChange: true,
  beforeMfaEnrollment: true,
  summary: 'Log out of an identity session.',
  description: 'Ends this session and returns the logout URL of the identity provider.',
  responses: {
    200: {
      description:
        'Logged out. `logout_url` is the URL that ends the session at the identity provider (OpenID Connect RP-Initiated Logout). It is absent if the session does not come from this identity provider or has already ended, or if the provider is unavailable or has no such URL.',
      schema: z.strictObject({ logout_url: z.string().optional() }),
      headers: { 'Cache-Control': 'no-store' },
    },
  },
  errors: ['not_found', 'identity_login_disabled'],
});

export const backchannelLogout = define('backchannelLogout', 'POST', '/api/:identity/backchannel-logout', {
  access: 'public',
  summary: 'End sessions after a provider logout.',
  description:
    'The identity provider calls this URL when a user logs out there (OpenID Connect Back-Channel Logout 1.0). Each logout token is accepted once.',
  body: {
    kinds: ['form'],
    maxBytes: 16_384,
    // The specification requires that unknown parameters are ignored.
    schema: z.object({ logout_token: multiLineText(1, 10_000) }),
  },
  invalidBody: 'invalid_request',
  responses: {
    200: {
      description: 'The sessions have ended.',
      schema: z.strictObject({}),
      headers: { 'Cache-Control': 'no-store' },
    },
  },
  errors: ['not_found', 'identity_login_disabled', 'identity_unavailable'],
});

export const updateSuborg = define('updateSuborg', 'POST', '/api/:identity/update-suborg', {
  access: 'user',
  // Each change adds an entry to the audit log, which is kept for a year.
  rateLimit: { requests: 60, seconds: 60 },
  summary: 'Select a part of the organisation.',
  description: 'Accepts a part that the identity provider listed at login.',
  body: jsonBody({ suborg: multiLineText(1, 200) }),
  responses: {
    200: {
      description: 'Selected. The next access token contains the selection.',
      schema: z.strictObject({ success: z.literal(true), user: profile }),
    },
  },
  errors: ['not_found', 'identity_login_disabled', 'suborg_not_allowed'],
});
