import { z } from 'zod';
import { endpointsWith, jsonBody } from './endpoint.ts';
import { id, idSegment, page, pageQuery, multiLineText, time } from './schemas.ts';

export const roles = ['user', 'sre', 'admin'] as const;
export type Role = (typeof roles)[number];

/** A user as they see themselves. */
export const user = z.strictObject({ id, email: z.string(), name: z.string(), created_at: time });

/** A user's profile. `suborg` is present once it was chosen at the identity service. */
export const profile = z.strictObject({
  ...user.shape,
  roles: z.array(z.enum(roles)),
  suborg: z.string().optional(),
});

const define = endpointsWith({ service: 'auth', access: 'user' });

export const me = define('me', 'GET', '/api/me', {
  beforePasswordChange: true,
  summary: 'Who the access token belongs to.',
  responses: {
    200: {
      description: 'The user. `suborg` once one was chosen at the identity service.',
      schema: profile,
    },
  },
});

export const changePassword = define('changePassword', 'POST', '/api/password', {
  beforePasswordChange: true,
  rateLimit: { requests: 60, seconds: 60, guessing: true },
  summary:
    'Set a new password. After a login with a temporary password that one is `current_password`. All sessions end.',
  body: jsonBody(
    z.strictObject({
      current_password: multiLineText(1, 1024),
      new_password: multiLineText(1, 1024).meta({
        description: '15 to 128 characters of any kind, unless configured otherwise, and not easy to guess.',
      }),
    }),
  ),
  responses: { 204: { description: 'Changed. All sessions have ended, this one too.' } },
});

const session = z.strictObject({
  id,
  device: z.string().meta({ description: 'What the User-Agent says at login, shortened.' }),
  address: z.string(),
  created_at: time,
  last_used_at: time,
  current: z.boolean(),
});

export const listSessions = define('listSessions', 'GET', '/api/sessions', {
  summary: 'List where you are logged in, newest first.',
  query: z.strictObject(pageQuery),
  responses: { 200: { description: 'A page of sessions.', schema: page(session) } },
});

export const deleteSessions = define('deleteSessions', 'DELETE', '/api/sessions', {
  summary: 'Log out everywhere, here too.',
  responses: { 204: { description: 'All sessions have ended.' } },
});

export const deleteSession = define('deleteSession', 'DELETE', '/api/sessions/:id', {
  summary: 'Log out one device.',
  params: z.strictObject({ id: idSegment }),
  responses: { 204: { description: 'The session has ended.' } },
  errors: ['not_found'],
});
