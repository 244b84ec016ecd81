import { z } from 'zod';
import { profile } from './accounts.ts';
import { endpointsWith, jsonBody } from './endpoint.ts';
import { queryText, multiLineText } from './schemas.ts';

/**
 * Values of `error` in the URL to which a failed callback redirects the browser, once the login is known. Names are added,
 * never changed.
 */
export const identityErrors = {
  access_denied: 'the person, or the identity service, said no',
  identity_unavailable: 'the identity service is away or refuses the platform',
  identity_issuer_mismatch: 'the answer is not from the identity service that was asked (RFC 9207)',
  identity_code_refused: 'the identity service does not take its code, or the PKCE verifier with it',
  identity_token_invalid: 'the ID token is not for this login, or not from the identity service',
  identity_email_missing: 'the identity service tells no usable email address',
  identity_email_taken: 'another user has the address, and may not be taken for this person',
  identity_user_disabled: 'the user is disabled',
} as const;
export type IdentityError = keyof typeof identityErrors;

const params = z.strictObject({
  identity: multiLineText(1, 32).meta({
    description: 'The name of the identity service, as IDENTITY_NAME has it.',
    pattern: '^[a-z][a-z0-9-]{0,31}$',
  }),
});
const errorList = Object.entries(identityErrors).map(([code, meaning]) => `\`${code}\`: ${meaning}`);

/** RFC 7636 §4.2: the SHA-256 of the verifier in base64url. S256 is the only method. */
const codeChallenge = z.string().regex(/^[\w-]{43}$/, 'Must be a SHA-256 in base64url (RFC 7636 §4.2).');

const define = endpointsWith({ service: 'auth' });

export const identityLogin = define('identityLogin', 'GET', '/api/:identity/login', {
  access: 'public',
  cookies: true,
  noHead: true,
  rateLimit: { requests: 60, seconds: 60 },
  summary: 'Log in at the identity service; for a browser to go to.',
  params,
  query: z.strictObject({
    return_to: queryText(1, 2000).meta({
      description: 'Where the browser goes in the end: exactly one of IDENTITY_RETURN_TO.',
    }),
    code_challenge: codeChallenge.meta({
      description: 'base64url(SHA-256(code_verifier)); the verifier is sent with the code to /api/token.',
    }),
    state: queryText(1, 512).meta({
      description: 'Comes back with the code, so that the client knows its login.',
    }),
  }),
  responses: {
    302: {
      description: 'To the identity service.',
      headers: {
        Location: 'Its authorization endpoint.',
        'Set-Cookie': 'Binds the login to this browser for 10 minutes.',
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
  summary: 'Where the identity service sends the browser back to.',
  params,
  // RFC 6749 §4.1.2: unknown parameters are ignored.
  query: z.object({
    state: queryText(1, 512),
    code: queryText(1, 4096).optional(),
    iss: queryText(1, 2000).optional(),
    error: queryText(1, 200).optional(),
    error_description: queryText(0, 2000).optional(),
  }),
  responses: {
    302: {
      description: [
        'To `return_to` with `state`, and `code`, which is good for 60 seconds at /api/token, or `error`.',
        ...errorList,
      ].join(' '),
      headers: { Location: 'The `return_to` of the login.' },
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
  summary: 'End this session, and learn where to end the one at the identity service.',
  params,
  responses: {
    200: {
      description:
        'Logged out. `logout_url`: where the browser ends the session at the identity service (OpenID Connect RP-Initiated Logout); absent when the session did not come from there, or there is no such place.',
      schema: z.strictObject({ logout_url: z.string().optional() }),
      headers: { 'Cache-Control': 'no-store' },
    },
  },
  errors: ['not_found', 'identity_login_disabled'],
});

export const updateSuborg = define('updateSuborg', 'POST', '/api/:identity/update-suborg', {
  access: 'user',
  summary: 'Choose a part of the organisation, among those that the identity service named at login.',
  params,
  body: jsonBody(z.strictObject({ suborg: multiLineText(1, 200) })),
  responses: {
    200: {
      description: 'Chosen. It is in the next access token.',
      schema: z.strictObject({ success: z.literal(true), user: profile }),
    },
  },
  errors: ['not_found', 'identity_login_disabled', 'suborg_not_allowed'],
});
