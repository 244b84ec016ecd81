import { expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import {
  ageSession,
  createUser,
  emails,
  linkIdentity,
  logIn,
  newAddress,
  newUser,
  password as demoPassword,
  refresh,
  tokenOf,
} from '../../../test/support/accounts.ts';
import { isAcceptedEverywhere, untilRefused } from '../../../test/support/revoked.ts';
import { database } from '../../../test/support/records.ts';
import { stack } from '../../../test/support/stack.ts';
import { userObjects } from '../../../test/support/user-objects.ts';
import { until } from '../../../test/support/wait.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const { gateway } = stack();

const fresh = () => ({ email: `made-${randomUUID()}@example.com`, name: 'Mada Made' });
const create = (body: { email: string; name: string; roles?: contract.Role[] } = fresh()) => createUser(body);

async function recordOf(event: contract.AuditEvent, userId: number) {
  const query = { event, user_id: userId, limit: 1 };
  const token = await tokenOf(gateway, 'admin');
  return (await call(gateway, contract.listAudit, { query, token })).body!.items[0];
}

async function theAdmin(): Promise<string> {
  const { body } = await call(gateway, contract.me, { token: await tokenOf(gateway, 'admin') });
  return `user:${body!.id}`;
}

/** Throws if another admin exists, because then removing the rights of the demo admin would succeed. */
async function theOnlyAdmin(): Promise<number> {
  const admins: number[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const token = await tokenOf(gateway, 'admin');
    const query = { limit: 100, ...(cursor && { cursor }) };
    const { body } = await call(gateway, contract.listUsers, { query, token });
    admins.push(...body!.items.filter(({ roles }) => roles.includes('admin')).map(({ id }) => id));
    cursor = body!.next_cursor;
  }
  expect(admins).toHaveLength(1);
  return admins[0]!;
}

const invalidUser = {
  fields: {
    email: [
      'no-address',
      'two words@example.com',
      'zero\u200bwidth@example.com',
      '\u212aim@example.com', // NFC makes the Kelvin sign a K.
      `${'x'.repeat(250)}@example.com`,
    ],
    name: ['', ' \u200b', 'an\u001b[2Jn', 'x'.repeat(201)],
    roles: [[], ['root'], ['user', 'user']],
    id: [1],
    disabled: [true],
  },
};

describeEndpoint(contract.createUser, { body: fresh(), invalid: invalidUser }, ({ ask }) => {
  test('creates a user who can log in with the password, and writes an audit entry', async () => {
    const user = { ...fresh(), password: 'wooden lantern drifts past nine', roles: ['user', 'sre'] as const };
    const address = newAddress();
    const headers = { 'X-Forwarded-For': address };
    const { status, body } = await ask({ body: { ...user, roles: [...user.roles] }, headers });
    const { password, ...shown } = user;
    expect({ status, body }).toMatchObject({ status: 201, body: { ...shown, disabled: false } });
    const { token } = await logIn(user.email, password);
    expect((await call(gateway, contract.me, { token })).body).toMatchObject({ id: body!.id, ...shown });
    expect(await recordOf('user_created', body!.id)).toMatchObject({
      actor: await theAdmin(),
      address,
      details: { roles: user.roles },
    });
  });

  test('creates a user without password who cannot log in, with no roles by default', async () => {
    const body = fresh();
    expect(await ask({ body })).toMatchObject({ status: 201, body: { ...body, roles: ['user'] } });
    const guess = { email: body.email, password: 'anything' };
    const { error } = await call(gateway, contract.login, { body: guess });
    expect(error?.error).toBe('invalid_credentials');
  });

  test('returns 409 for an email in use, in any case', async () => {
    const { email } = await create();
    for (const taken of [email, email.toUpperCase(), emails.user]) {
      const { error } = await ask({ body: { email: taken, name: 'Second' } });
      expect(error).toMatchObject({ error: 'email_taken', code: 409 });
    }
  });

  test('returns 403 for a role beyond user if the login is over 15 minutes old', async () => {
    const { token } = await logIn(emails.admin, demoPassword);
    await ageSession(token);
    for (const role of ['sre', 'admin'] as const) {
      const { error } = await ask({ token, body: { ...fresh(), roles: [role] } });
      expect(error?.error).toBe('reauthentication_required');
    }
    expect((await ask({ token, body: { ...fresh(), roles: ['user'] } })).status).toBe(201);
  });

  test('treats composed and decomposed accents in an email as equal', async () => {
    const { email, ...rest } = fresh();
    const [composed, decomposed] = ['NFC', 'NFD'].map((form) => `casé-${email}`.normalize(form));
    expect(await ask({ body: { ...rest, email: decomposed! } })).toMatchObject({ body: { email: composed } });
    const { error } = await ask({ body: { ...rest, email: composed! } });
    expect(error).toMatchObject({ error: 'email_taken' });
  });
});

const badQueries = ['search=', `search=${'x'.repeat(201)}`];

describeEndpoint(contract.listUsers, { invalid: { queries: badQueries } }, ({ ask }) => {
  test('lists users, newest first, in pages', async () => {
    const [older, newer] = [await create(), await create()];
    const { body } = await ask({ query: { limit: 100 } });
    const ids = body!.items.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted((a, b) => b - a));
    expect(ids).toEqual(expect.arrayContaining([older.id, newer.id]));
    const below = await ask({ query: { limit: 1, cursor: newer.id } });
    expect(below.body!.items[0]!.id).toBeLessThan(newer.id);
    expect(below.body!.next_cursor).toBe(String(below.body!.items[0]!.id));
    const found = await ask({ query: { search: older.email } });
    expect(found.body).toEqual({ items: [older], next_cursor: null });
  });
});

describeEndpoint(contract.readUser, {}, ({ ask }) => {
  test('returns one user, with the linked identities', async () => {
    const user = await create();
    const body = { ...user, identities: [] };
    expect(await ask({ params: { id: user.id } })).toMatchObject({ status: 200, body });
    const identities = [{ issuer: 'https://idp.example', email: null, email_verified: null }];
    await linkIdentity(user.id);
    expect((await ask({ params: { id: user.id } })).body).toMatchObject({ identities });
  });
});

describeEndpoint(contract.listUserSessions, {}, ({ ask }) => {
  test('lists the sessions of another user', async () => {
    const { id, address } = await newUser();
    const { body } = await ask({ params: { id } });
    expect(body!.items).toMatchObject([{ address, current: false }]);
  });
});

describeEndpoint(contract.deleteUserSessions, {}, ({ ask }) => {
  test('logs the user out everywhere', async () => {
    const { id, token, refreshToken } = await newUser();
    expect(await ask({ params: { id } })).toMatchObject({ status: 204 });
    expect(await refresh(refreshToken)).toMatchObject({ reason: 'revoked' });
    await untilRefused(token);
    const details = { session: 'all' };
    expect(await recordOf('session_revoked', id)).toMatchObject({ actor: await theAdmin(), details });
  });
});

describeEndpoint(contract.deleteUserIdentity, {}, ({ ask }) => {
  test('removes the link and ends the sessions that it may have opened', async () => {
    const { id, token } = await newUser();
    const params = { id, identity_id: await linkIdentity(id) };
    expect(await ask({ params })).toMatchObject({ status: 204 });
    expect((await ask({ params })).error?.error).toBe('not_found');
    await untilRefused(token);
    expect(await recordOf('identity_unlinked', id)).toMatchObject({ actor: await theAdmin() });
  });
});

const updateUserExample = {
  body: { name: 'Renamed' },
  invalid: {
    fields: {
      name: [''],
      roles: [[], ['sre', 'sre']],
      disabled: ['yes'],
      email: ['other@example.com'],
      password: ['wooden lantern drifts past nine'],
    },
  },
};
describeEndpoint(contract.updateUser, updateUserExample, ({ ask }) => {
  test('changes name, roles and disabled; keeps fields that are not sent', async () => {
    const user = await create();
    const params = { id: user.id };
    expect((await ask({ params, body: {} })).body).toEqual(user);
    const renamed = await ask({ params, body: { name: 'Renamed' } });
    expect(renamed.body).toEqual({ ...user, name: 'Renamed' });
    const disabled = await ask({ params, body: { roles: ['sre', 'user'], disabled: true } });
    expect(disabled.body).toEqual({ ...renamed.body, roles: ['sre', 'user'], disabled: true });
    expect(await recordOf('user_changed', user.id)).toMatchObject({
      actor: await theAdmin(),
      details: { roles: { from: ['user'], to: ['sre', 'user'] }, disabled: { from: false, to: true } },
    });
    const token = await tokenOf(gateway, 'admin');
    const { body } = await call(gateway, contract.readUser, { params, token });
    expect(body).toEqual({ ...disabled.body, mfa_enabled: false, identities: [] });
  });

  test('returns 403 for a change of roles or disabled if the login is over 15 minutes old', async () => {
    const { token } = await logIn(emails.admin, demoPassword);
    await ageSession(token);
    const params = { id: (await create()).id };
    for (const body of [{ roles: ['sre' as const] }, { disabled: true }]) {
      const { error } = await ask({ token, params, body });
      expect(error?.error).toBe('reauthentication_required');
    }
    const renamed = await ask({ token, params, body: { name: 'Renamed' } });
    expect(renamed.body).toMatchObject({ roles: ['user'], disabled: false });
  });

  test('logs a user out everywhere when a role is removed', async () => {
    const user = await newUser('user', 'sre');
    expect(await isAcceptedEverywhere(user.token)).toBe(true);
    expect(await ask({ params: { id: user.id }, body: { roles: ['user'] } })).toMatchObject({ status: 200 });
    expect(await refresh(user.refreshToken)).toMatchObject({ reason: 'revoked' });
    await untilRefused(user.token);
    const again = await logIn(user.email, user.password);
    const { error } = await call(gateway, contract.listFailedJobs, { token: again.token });
    expect(error?.error).toBe('insufficient_scope');
  });

  test('grants an added role from the next refresh on', async () => {
    const user = await newUser();
    await ask({ params: { id: user.id }, body: { roles: ['user', 'sre'] } });
    expect(await isAcceptedEverywhere(user.token)).toBe(true);
    const { body } = await refresh(user.refreshToken);
    expect(body!.scope).toBe('jobs:manage pulse:view');
    const { status } = await call(gateway, contract.listFailedJobs, { token: body!.access_token });
    expect(status).toBe(200);
  });

  test('logs a disabled user out everywhere and refuses logins until re-enabled', async () => {
    const user = await newUser();
    const params = { id: user.id };
    await ask({ params, body: { disabled: true } });
    expect(await refresh(user.refreshToken)).toMatchObject({ reason: 'revoked' });
    await untilRefused(user.token);
    const { email, password } = user;
    const { error } = await call(gateway, contract.login, { body: { email, password } });
    expect(error?.error).toBe('invalid_credentials');
    await ask({ params, body: { disabled: false } });
    const { token } = await logIn(email, password);
    expect(await isAcceptedEverywhere(token)).toBe(true);
  });

  test('returns 409 for removing the role of the last admin', async () => {
    const id = await theOnlyAdmin();
    for (const body of [{ disabled: true }, { roles: ['user' as const] }]) {
      const { error } = await ask({ params: { id }, body });
      expect(error).toMatchObject({ error: 'last_admin', code: 409 });
    }
    expect(await isAcceptedEverywhere(await tokenOf(gateway, 'admin'))).toBe(true);
  });
});

describeEndpoint(contract.deleteUser, {}, ({ ask }) => {
  test('the services erase the data of the user', async () => {
    const user = await newUser();
    for (const make of Object.values(userObjects)) await make(user);
    expect(await ask({ params: { id: user.id } })).toMatchObject({ status: 204 });
    const tables = ['letters.letter', 'media.file', 'devices.device'];
    const left = tables.map((table) => `SELECT 1 FROM ${table} WHERE user_id = $1`).join(' UNION ALL ');
    await until('all was erased', async () => (await database().query(left, [user.id])).rowCount === 0);
  });

  test('deletes the user, ends all sessions and frees the email', async () => {
    const user = await newUser();
    const params = { id: user.id };
    expect(await ask({ params })).toMatchObject({ status: 204 });
    expect(await refresh(user.refreshToken)).toMatchObject({ reason: 'unknown' });
    await untilRefused(user.token);
    expect((await ask({ params })).error?.error).toBe('not_found');
    // The audit log keeps the entries, and no longer knows whom they are about.
    expect(await recordOf('login', user.id)).toBeUndefined();
    expect((await create({ email: user.email, name: 'Next' })).id).not.toBe(user.id);
  });

  test('returns 409 for deleting the last admin', async () => {
    expect((await ask({ params: { id: await theOnlyAdmin() } })).error?.error).toBe('last_admin');
  });
});

const password = 'wooden lantern drifts past nine';
const wrong = { current_password: 'a wrong password' };

const wrongDeletion = { fields: { current_password: ['', 1], code: ['x'], password: [password] } };
describeEndpoint(contract.deleteMe, { body: wrong, invalid: wrongDeletion }, ({ ask }) => {
  test('deletes the account with the password, ends all sessions and frees the email', async () => {
    const user = await newUser();
    const params = { id: user.id };
    for (const body of [wrong, {}, undefined]) {
      const { error } = await ask({ token: user.token, ...(body && { body }) });
      expect(error).toMatchObject({ error: 'reauthentication_required', code: 403 });
    }
    expect(await isAcceptedEverywhere(user.token)).toBe(true);
    const { status } = await ask({ token: user.token, body: { current_password: user.password } });
    expect(status).toBe(204);
    await untilRefused(user.token);
    expect(await refresh(user.refreshToken)).toMatchObject({ reason: 'unknown' });
    const token = await tokenOf(gateway, 'admin');
    expect((await call(gateway, contract.readUser, { params, token })).error?.error).toBe('not_found');
    expect((await create({ email: user.email, name: 'Next' })).id).not.toBe(user.id);
  });

  test('returns 409 for the last admin', async () => {
    await theOnlyAdmin();
    const { error } = await ask({ as: 'admin', body: { current_password: demoPassword } });
    expect(error).toMatchObject({ error: 'last_admin', code: 409 });
  });
});
