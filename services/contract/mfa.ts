import { z } from 'zod';
import { defineOwn } from './accounts.ts';
import { loginReply } from './auth.ts';
import { jsonBody, jsonBodyOf } from './endpoint.ts';
import { eitherOf, multiLineText, totpCode } from './schemas.ts';

const recoveryCode = multiLineText(1, 100).describe('One of the 10 recovery codes. Each is valid once.');
const proof = { code: totpCode, recovery_code: recoveryCode };

export const loginMfa = defineOwn('loginMfa', 'POST', '/api/login/mfa', {
  access: 'public',
  latencyClass: 'login',
  summary: 'Complete a login with a second factor.',
  description:
    'Send the `mfa_token` of the 401 `mfa_required` within 5 minutes, with a code of the authenticator app or a recovery code. Each code is accepted once. After a wrong code, try again with the same `mfa_token`.',
  body: jsonBodyOf(eitherOf({ mfa_token: multiLineText(1, 200) }, proof)),
  responses: { 200: loginReply },
  errors: ['invalid_credentials'],
});

export const beginTotp = defineOwn('beginTotp', 'POST', '/api/mfa/totp', {
  recentLogin: true,
  summary: 'Begin to set up a second factor.',
  description: 'Returns a secret for an authenticator app (TOTP). POST /api/mfa/totp/confirm turns it on.',
  responses: {
    201: {
      description: 'The secret in base32, and an `otpauth` URI to show as a QR code.',
      schema: z.strictObject({ secret: z.string(), uri: z.string() }),
      headers: { 'Cache-Control': 'no-store' },
    },
  },
  errors: ['mfa_enabled'],
});

export const confirmTotp = defineOwn('confirmTotp', 'POST', '/api/mfa/totp/confirm', {
  summary: 'Turn on the second factor.',
  description: 'Send the first code of the authenticator app. The recovery codes appear only in this reply.',
  body: jsonBody({ code: totpCode }),
  responses: {
    200: {
      description: 'Later logins need a code. Ask the user to store the recovery codes.',
      schema: z.strictObject({ recovery_codes: z.array(z.string()).length(10) }),
      headers: { 'Cache-Control': 'no-store' },
    },
  },
  errors: ['invalid_code', 'mfa_enabled'],
});

export const deleteTotp = defineOwn('deleteTotp', 'DELETE', '/api/mfa/totp', {
  summary: 'Turn off your second factor.',
  body: jsonBodyOf(eitherOf({}, proof)),
  responses: { 204: { description: 'Logins need no code.' } },
  errors: ['invalid_code', 'not_found'],
});
