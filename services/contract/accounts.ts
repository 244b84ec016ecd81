import { z } from 'zod';
import { endpointsWith, jsonBody, jsonBodyOf, optionalJsonBody } from './endpoint.ts';
import {
  eitherOf,
  id,
  idParams,
  multiLineText,
  page,
  pageQuery,
  singleLineText,
  time,
  totpCode,
} from './schemas.ts';

export const roles = ['user', 'sre', 'admin'] as const;
export type Role = (typeof roles)[number];

/** The fields of a user in every reply. */
export const user = z.strictObject({ id, email: z.string(), name: z.string(), created_at: time });

export const profile = z.strictObject({
  ...user.shape,
  roles: z.array(z.enum(roles)),
  mfa_enabled: z.boolean(),
  suborg: z.string().optional().describe('Part of the organisation that an identity login selected.'),
});

const define = endpointsWith({ service: 'auth', access: 'user' });
/** Defines an endpoint of the user's own secrets: limits guesses, works before a required second factor is set up. */
export const defineOwn = endpointsWith({
  service: 'auth',
  access: 'user',
  rateLimit: { requests: 60, seconds: 60, guessing: true },
  beforeMfaEnrollment: true,
});

export const me = define('me', 'GET', '/api/me', {
  beforePasswordChange: true,
  beforeMfaEnrollment: true,
  summary: 'Read your profile.',
  responses: { 200: { description: 'The user that the access token belongs to.', schema: profile } },
});

export const deleteMe = defineOwn('deleteMe', 'DELETE', '/api/me', {
  recentLogin: true,
  summary: 'Delete your account and all your data.',
  description:
    'A wrong or missing password or code returns 403 `reauthentication_required`. Omit `current_password` if you have none, after a login at the identity provider. All services delete their data about you within a minute.',
  body: optionalJsonBody({
    current_password: multiLineText(1, 1024).optional(),
    code: totpCode.optional().describe('Code of the authenticator app, if you have a second factor.'),
  }),
  responses: { 204: { description: 'Your account was deleted. All sessions have ended.' } },
  errors: ['last_admin'],
});

const newPassword = multiLineText(1, 1024).describe('15 to 128 characters by default, not easy to guess.');

export const changePassword = defineOwn('changePassword', 'POST', '/api/password', {
  beforePasswordChange: true,
  summary: 'Change your password.',
  description:
    'Ends all sessions. After a login with a temporary password, send it as `current_password`. A wrong `current_password` counts as a failed login and returns 422; `details` then has the path `body.current_password`.',
  body: jsonBody({ current_password: multiLineText(1, 1024), new_password: newPassword }),
  responses: { 204: { description: 'Password changed. All sessions have ended, including this one.' } },
});

export const forgotPassword = defineOwn('forgotPassword', 'POST', '/api/password/forgot', {
  access: 'public',
  latencyClass: 'login',
  summary: 'Request a password reset email.',
  description:
    'The reply and its duration are the same for every email address. A user gets at most one email in 5 minutes. In a day, a user gets at most 5 emails for requests from networks where the user has logged in, and 5 for all others. Further requests are accepted and ignored.',
  body: jsonBody({ email: singleLineText(1, 254).trim().normalize('NFC') }),
  responses: { 202: { description: 'Accepted. If an enabled user has the address, an email follows.' } },
  errors: ['mail_disabled'],
});

export const resetPassword = defineOwn('resetPassword', 'POST', '/api/password/reset', {
  access: 'public',
  summary: 'Set a new password by email token.',
  description:
    'Ends all sessions of the user. A second factor stays. If the password is refused with 422, the token stays valid.',
  body: jsonBody({
    token: multiLineText(1, 1024).describe('Token of the link in the email, valid once and for 30 minutes.'),
    new_password: newPassword,
  }),
  responses: { 204: { description: 'Password changed. All sessions of the user have ended.' } },
  errors: ['invalid_reset_token'],
});

export const session = z.strictObject({
  id,
  device: z.string().describe('Browser and system at the login (`Firefox on Windows`), or the User-Agent.'),
  address: z.string().describe('IP address of the client at the login.'),
  created_at: time,
  last_used_at: time,
  current: z.boolean().describe('Whether this session sent the request.'),
});

export const reauthenticate = defineOwn('reauthenticate', 'POST', '/api/reauthenticate', {
  latencyClass: 'login',
  summary: 'Confirm your password or code.',
  description:
    'Sensitive actions return 403 `reauthentication_required` unless this session logged in or was confirmed here in the last 15 minutes.',
  body: jsonBodyOf(eitherOf({}, { password: multiLineText(1, 1024), code: totpCode })),
  responses: { 204: { description: 'Confirmed. The session counts as a recent login for 15 minutes.' } },
  errors: ['invalid_credentials'],
});

export const listSessions = define('listSessions', 'GET', '/api/sessions', {
  summary: 'List your sessions, newest first.',
  query: z.strictObject(pageQuery),
  responses: { 200: { description: 'A page of sessions.', schema: page(session) } },
});

export const deleteSessions = define('deleteSessions', 'DELETE', '/api/sessions', {
  summary: 'End all your sessions.',
  responses: { 204: { description: 'All sessions have ended.' } },
});

export const deleteSession = define('deleteSession', 'DELETE', '/api/sessions/:id', {
  summary: 'End one of your sessions.',
  params: idParams,
  responses: { 204: { description: 'The session has ended.' } },
  errors: ['not_found'],
});
