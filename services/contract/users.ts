import { z } from 'zod';
import { roles, user } from './accounts.ts';
import { endpointsWith, jsonBody, optionalJsonBody } from './endpoint.ts';
import { id, idSegment, singleLineText, page, pageQuery, queryText, multiLineText, time } from './schemas.ts';

/** Events of the audit log. Names are added, never changed. */
export const auditEvents = [
  'login',
  'login_failed',
  'logout',
  'session_revoked',
  'refresh_token_reused',
  'password_changed',
  'password_change_failed',
  'temporary_password_created',
  'user_created',
  'user_changed',
  'user_deleted',
  'client_created',
  'client_token',
  'client_refused',
  'client_secret_rotated',
  'client_disabled',
  'signing_key_rotated',
  'key_secret_rotated',
  'identity_linked',
  'suborg_changed',
] as const;
export const auditEvent = z.enum(auditEvents);
export type AuditEvent = z.infer<typeof auditEvent>;

const params = z.strictObject({ id: idSegment });

/** An email address of visible characters; NFC, because keyboards differ in the form that they type. */
export const email = multiLineText(3, 254)
  .regex(/^[^\s@\p{Cc}\p{Cf}]+@[^\s@\p{Cc}\p{Cf}]+$/u, 'Must be an email address.')
  .normalize('NFC');
export const personName = singleLineText(1, 200);
const rolesOfUser = z
  .array(z.enum(roles))
  .min(1)
  .refine((all) => new Set(all).size === all.length, 'Names a role twice.')
  .meta({ uniqueItems: true });

/** A user as an administrator sees them. */
const account = z.strictObject({ ...user.shape, roles: z.array(z.enum(roles)), disabled: z.boolean() });

const define = endpointsWith({
  service: 'auth',
  access: 'users:admin',
});

export const listUsers = define('listUsers', 'GET', '/api/admin/users', {
  summary: 'List users, newest first.',
  query: z.strictObject({
    search: queryText(1, 200).optional().meta({ description: 'A part of the name or the address.' }),
    ...pageQuery,
  }),
  responses: { 200: { description: 'A page of users.', schema: page(account) } },
});

export const createUser = define('createUser', 'POST', '/api/admin/users', {
  summary: 'Make a user. Without a password they can log in once they have a temporary one.',
  body: jsonBody(
    z.strictObject({
      email,
      name: personName,
      password: multiLineText(1, 1024).optional(),
      roles: rolesOfUser.default(['user']),
    }),
  ),
  responses: { 201: { description: 'The new user.', schema: account } },
  errors: ['email_taken'],
});

export const readUser = define('readUser', 'GET', '/api/admin/users/:id', {
  summary: 'Read a user.',
  params,
  responses: { 200: { description: 'The user.', schema: account } },
  errors: ['not_found'],
});

export const updateUser = define('updateUser', 'PATCH', '/api/admin/users/:id', {
  summary: 'Change a user. Who is disabled or loses a role has no session any more.',
  params,
  body: jsonBody(
    z.strictObject({
      name: personName.optional(),
      roles: rolesOfUser.optional(),
      disabled: z.boolean().optional(),
    }),
  ),
  responses: { 200: { description: 'The user.', schema: account } },
  errors: ['not_found', 'last_admin'],
});

export const deleteUser = define('deleteUser', 'DELETE', '/api/admin/users/:id', {
  summary: 'Delete a user. Their sessions end.',
  params,
  responses: { 204: { description: 'The user is gone.' } },
  errors: ['not_found', 'last_admin'],
});

export const createTemporaryPassword = define(
  'createTemporaryPassword',
  'POST',
  '/api/admin/users/:id/temporary-password',
  {
    summary:
      'Make a password for one login. It is shown here, once; the old one goes on working until it is changed.',
    params,
    body: optionalJsonBody(
      z.strictObject({
        expires_in: z
          .int()
          .min(60)
          .max(7 * 86_400)
          .default(86_400)
          .meta({ description: 'Seconds until it is of no use, at most 7 days.' }),
      }),
    ),
    responses: {
      200: {
        description: 'The temporary password.',
        schema: z.strictObject({ temporary_password: z.string(), expires_at: time }),
        headers: { 'Cache-Control': 'no-store' },
      },
    },
    errors: ['not_found'],
  },
);

export const listAudit = define('listAudit', 'GET', '/api/admin/audit', {
  summary: 'List what happened around accounts, newest first.',
  query: z.strictObject({
    user_id: idSegment.optional(),
    event: auditEvent.optional(),
    ...pageQuery,
  }),
  responses: {
    200: {
      description: 'A page of the audit log.',
      schema: page(
        z.strictObject({
          id,
          at: time,
          event: auditEvent,
          user_id: id.nullable().meta({ description: 'Whom it was about.' }),
          actor: z
            .string()
            .meta({ description: 'Who did it: user:<id>, client:<name>, or command.' })
            .nullable(),
          address: z.string().nullable(),
          details: z.record(z.string(), z.unknown()),
        }),
      ),
    },
  },
});
