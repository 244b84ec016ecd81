import { beforeEach, describe, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { endAllSessions } from '../commands/end-all-sessions.ts';
import { keySecret, longBackoff, password, reasonOf, useAuth, type TestAuth } from '../testing/start-auth.ts';

const auth = useAuth({ backoff: longBackoff });
let admin: Awaited<ReturnType<TestAuth['person']>>;
beforeEach(async () => {
  admin = await auth.person({}, 'user', 'admin');
});

const age = (sessionId: number) =>
  auth.sql(`UPDATE auth.session SET created_at = now() - interval '16 minutes' WHERE id = $1`, sessionId);
const reauthenticate = (token: string, given = password) =>
  call(auth.origin, contract.reauthenticate, { body: { password: given }, token });
const update = (id: number, body: contract.BodyInput<typeof contract.updateUser>) =>
  call(auth.origin, contract.updateUser, { params: { id }, body, token: admin.token });

describe('an access token of an admin whose login is 16 minutes old', () => {
  test('cannot create an admin, but a regular user', async () => {
    await age(admin.sessionId);
    const create = (...roles: contract.Role[]) => {
      const body = { email: `${roles.join('-')}-${admin.id}@example.com`, name: 'New', roles };
      return call(auth.origin, contract.createUser, { body, token: admin.token });
    };
    expect((await create('admin')).error?.error).toBe('reauthentication_required');
    expect((await create('sre')).error?.error).toBe('reauthentication_required');
    expect((await create('user')).status).toBe(201);
  });

  test('cannot change roles or disable a user, but rename one', async () => {
    const { id } = await auth.person();
    await age(admin.sessionId);
    for (const body of [{ roles: ['admin' as const] }, { disabled: true }]) {
      expect((await update(id, body)).error?.error).toBe('reauthentication_required');
    }
    expect((await update(id, { name: 'Renamed' })).status).toBe(200);
    expect(await auth.stores.users.findById(id)).toMatchObject({ roles: ['user'], disabled: false });
  });

  test('can do so after the password was sent, for this session only', async () => {
    const other = (await auth.logIn(admin.email)).body!.token;
    await auth.sql(
      `UPDATE auth.session SET created_at = now() - interval '16 minutes' WHERE user_id = $1`,
      admin.id,
    );
    expect((await reauthenticate(other)).status).toBe(204);
    const { id } = await auth.person();
    expect((await update(id, { disabled: true })).error?.error).toBe('reauthentication_required');
    expect((await reauthenticate(admin.token)).status).toBe(204);
    expect((await update(id, { disabled: true })).status).toBe(200);
  });

  test('does not become recent by a refresh', async () => {
    await age(admin.sessionId);
    const { body } = await auth.refresh(admin.refreshToken);
    const { id } = await auth.person();
    const options = { params: { id }, token: body!.access_token };
    expect((await call(auth.origin, contract.deleteUser, options)).error?.error).toBe(
      'reauthentication_required',
    );
  });
});

test('guesses of the password are limited as those of a login', async () => {
  const thief = await auth.person();
  for (let guess = 0; guess < 10; guess += 1) {
    expect((await reauthenticate(thief.token, `guess ${guess}`)).error?.error).toBe('invalid_credentials');
  }
  // The thief is in the network of a known session, so its guesses are checked; their reply does not say so.
  expect((await reauthenticate(thief.token, 'guess')).error?.error).toBe('rate_limited');
  const failures = `SELECT FROM auth.audit WHERE user_id = $1 AND event = 'reauthentication_failed'`;
  expect(await auth.sql(failures, thief.id)).toHaveLength(11);
});

test('a compromised password stops working, with all that the thief could have set up', async () => {
  const user = await auth.person();
  await auth.sql(
    `INSERT INTO auth.identity (issuer, subject, user_id) VALUES ('https://idp.example', $1, $2)`,
    String(user.id),
    user.id,
  );
  const options = { params: { id: user.id }, body: { compromised: true }, token: admin.token };
  const { body } = await call(auth.origin, contract.createTemporaryPassword, options);
  expect((await auth.logIn(user.email)).error?.error).toBe('invalid_credentials');
  expect(reasonOf(await auth.refresh(user.refreshToken))).toBe('revoked');
  expect(await auth.stores.identities.list(user.id)).toEqual([]);
  const login = await auth.logIn(user.email, body!.temporary_password);
  expect(login.body).toMatchObject({ must_change_password: true });
});

test('end-all-sessions logs everyone out, and a new login works', async () => {
  process.env['AUTH_KEY_SECRET'] = keySecret;
  const [one, two] = [await auth.person(), await auth.person()];
  expect(await auth.run(endAllSessions, [])).toMatch(/^Ended \d+ sessions and replaced the signing keys\./);
  delete process.env['AUTH_KEY_SECRET'];
  for (const { refreshToken } of [one, two])
    expect(reasonOf(await auth.refresh(refreshToken))).toBe('revoked');
  const { body } = await auth.logIn(one.email);
  expect((await call(auth.origin, contract.me, { token: body!.token })).status).toBe(200);
});
