import { z } from 'zod';
import { roles, session, user } from './accounts.ts';
import { endpointsWith, jsonBody, optionalJsonBody } from './endpoint.ts';
import {
  id,
  idParams,
  idSegment,
  singleLineText,
  page,
  pageQuery,
  queryText,
  multiLineText,
  time,
} from './schemas.ts';

/** Events of the audit log. Names are stable: add new ones, do not rename. */
export const auditEvent = z.enum([
  'login',
  'login_failed',
  'logout',
  'session_revoked',
  'refresh_token_reused',
  'password_changed',
  'password_change_failed',
  'reauthenticated',
  'reauthentication_failed',
  'temporary_password_created',
  'password_reset_requested',
  'password_reset',
  'mfa_enabled',
  'mfa_disabled',
  'mfa_required',
  'mfa_failed',
  'user_created',
  'user_changed',
  'user_deleted',
  'data_exported',
  'client_created',
  'client_token',
  'client_refused',
  'client_secret_rotated',
  'client_disabled',
  'signing_key_rotated',
  'key_secret_rotated',
  'identity_linked',
  'identity_unlinked',
  'suborg_changed',
  'letter_read',
  'failed_jobs_deleted',
]);
export type AuditEvent = z.infer<typeof auditEvent>;

/** An email address in NFC, as keyboards differ. Without the Kelvin sign: NFC would make it another address's K. */
export const email = multiLineText(3, 254)
  .regex(/^[^\s@\p{Cc}\p{Cf}\u212a]+@[^\s@\p{Cc}\p{Cf}\u212a]+$/u, 'Must be an email address.')
  .normalize('NFC');
export const personName = singleLineText(1, 200);
const rolesOfUser = z
  .array(z.enum(roles))
  .min(1)
  .refine((all) => new Set(all).size === all.length, 'Names a role twice.')
  .meta({ uniqueItems: true });

const account = z.strictObject({ ...user.shape, roles: z.array(z.enum(roles)), disabled: z.boolean() });

/** An identity of the user. `email` null: the latest login had none; both null: no login since the upgrade. */
export const linkedIdentity = z.strictObject({
  id,
  issuer: z.string().describe('Issuer URL of the identity provider.'),
  email: z.string().nullable(),
  email_verified: z.boolean().nullable().describe('Whether the provider has verified the email address.'),
});

const common = { service: 'auth', access: 'users:admin' } as const;
const define = endpointsWith(common);
/** Defines an endpoint of one user. */
const defineOne = endpointsWith({ ...common, params: idParams, errors: ['not_found'] });

export const listUsers = define('listUsers', 'GET', '/api/admin/users', {
  summary: 'List users, newest first.',
  query: z.strictObject({
    search: queryText(1, 200)
      .optional()
      .describe('A complete email address, or a part of the name or email address.'),
    ...pageQuery,
  }),
  responses: { 200: { description: 'A page of users.', schema: page(account) } },
});

export const createUser = define('createUser', 'POST', '/api/admin/users', {
  summary: 'Create a user.',
  description:
    'A user without a password needs a temporary password to log in. A role other than `user` needs a recent login.',
  body: jsonBody({
    email,
    name: personName,
    password: multiLineText(1, 1024).optional(),
    roles: rolesOfUser.default(['user']),
  }),
  responses: { 201: { description: 'The new user.', schema: account } },
  errors: ['email_taken', 'reauthentication_required'],
});

export const readUser = defineOne('readUser', 'GET', '/api/admin/users/:id', {
  summary: 'Read a user.',
  responses: {
    200: {
      description: 'The user, with the linked identities.',
      schema: account.extend({ mfa_enabled: z.boolean(), identities: z.array(linkedIdentity) }),
    },
  },
});

export const listUserSessions = defineOne('listUserSessions', 'GET', '/api/admin/users/:id/sessions', {
  summary: 'List the sessions of a user.',
  query: z.strictObject(pageQuery),
  responses: { 200: { description: 'A page of sessions, newest first.', schema: page(session) } },
});

export const deleteUserSessions = defineOne('deleteUserSessions', 'DELETE', '/api/admin/users/:id/sessions', {
  recentLogin: true,
  summary: 'End all sessions of a user.',
  responses: { 204: { description: 'All sessions have ended.' } },
});

export const deleteUserMfa = defineOne('deleteUserMfa', 'DELETE', '/api/admin/users/:id/mfa', {
  recentLogin: true,
  summary: 'Remove the second factor of a user.',
  description: 'For a user who has lost the device and the recovery codes.',
  responses: { 204: { description: 'The next login needs no code.' } },
});

export const deleteUserIdentity = defineOne(
  'deleteUserIdentity',
  'DELETE',
  '/api/admin/users/:id/identities/:identity_id',
  {
    recentLogin: true,
    summary: 'Unlink an identity from a user.',
    description: 'Also ends all sessions of the user.',
    params: z.strictObject({ id: idSegment, identity_id: idSegment }),
    responses: { 204: { description: 'The identity is unlinked.' } },
  },
);

export const updateUser = defineOne('updateUser', 'PATCH', '/api/admin/users/:id', {
  summary: 'Change a user.',
  description:
    'Disabling a user or removing a role ends all sessions of the user. A change of `roles` or `disabled` needs a recent login.',
  body: jsonBody({
    name: personName.optional(),
    roles: rolesOfUser.optional(),
    disabled: z.boolean().optional(),
  }),
  responses: { 200: { description: 'The user.', schema: account } },
  errors: ['not_found', 'last_admin', 'reauthentication_required'],
});

export const deleteUser = defineOne('deleteUser', 'DELETE', '/api/admin/users/:id', {
  recentLogin: true,
  summary: 'Delete a user.',
  description: 'Ends all sessions of the user. All services delete the data of the user within a minute.',
  responses: { 204: { description: 'User deleted.' } },
  errors: ['not_found', 'last_admin'],
});

export const createTemporaryPassword = defineOne(
  'createTemporaryPassword',
  'POST',
  '/api/admin/users/:id/temporary-password',
  {
    recentLogin: true,
    summary: 'Create a temporary password for a user.',
    description:
      'The temporary password is valid for one login and appears only in this reply. The old password stays valid until the user changes it, unless `compromised` is true.',
    body: optionalJsonBody({
      expires_in: z
        .int()
        .min(60)
        .max(7 * 86_400)
        .default(86_400)
        .describe('Lifetime in seconds, at most 7 days.'),
      compromised: z
        .boolean()
        .default(false)
        .describe('If other people know the password: also removes it, all sessions and linked identities.'),
    }),
    responses: {
      200: {
        description: 'The temporary password.',
        schema: z.strictObject({ temporary_password: z.string(), expires_at: time }),
        headers: { 'Cache-Control': 'no-store' },
      },
    },
  },
);

const auditEntry = z.strictObject({
  id,
  at: time,
  event: auditEvent,
  user_id: id.nullable().describe('ID of the user that the event is about.'),
  actor: z
    .string()
    .describe('Author: user:<id>, client:<name>, command, or user for an erased person.')
    .nullable(),
  address: z.string().nullable().describe('IP address of the client.'),
  details: z.record(z.string(), z.unknown()),
});

export const listAudit = define('listAudit', 'GET', '/api/admin/audit', {
  summary: 'List the audit log, newest first.',
  description:
    'The audit log records logins, tokens of clients, changes of accounts, clients and keys, exports of personal data, letters that staff read, and deletions of failed jobs.',
  query: z.strictObject({ user_id: idSegment.optional(), event: auditEvent.optional(), ...pageQuery }),
  responses: { 200: { description: 'A page of the audit log.', schema: page(auditEntry) } },
});
