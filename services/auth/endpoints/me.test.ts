import { describe, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { codeOf, enrol } from '../../../test/support/totp.ts';
import { longBackoff, password, useAuth, type TestAuth } from '../testing/start-auth.ts';
import { createUserStore } from '../user-store.ts';

type Person = Awaited<ReturnType<TestAuth['person']>>;

const auth = useAuth({ backoff: longBackoff });

const remove = ({ token }: Person, body?: contract.BodyInput<typeof contract.deleteMe>) =>
  auth.ask(contract.deleteMe, { token, ...(body && { body }) });
const refused = { status: 403, error: { error: 'reauthentication_required' } };

/** Returns the rows of all tables that name the user. */
async function rowsOf(id: number) {
  const tables = ['session', 'identity', 'totp', 'mfa_login'].map(
    (table) => `SELECT '${table}' AS name FROM auth.${table} WHERE user_id = $1`,
  );
  const text = `SELECT 'user' AS name FROM auth.user WHERE id = $1 UNION ALL ${tables.join(' UNION ALL ')}
                UNION ALL SELECT 'person' FROM audit.person WHERE user_id = $1
                UNION ALL SELECT 'deleted_user' FROM auth.deleted_user WHERE id = $1`;
  return (await auth.sql<{ name: string }>(text, id)).map(({ name }) => name);
}

async function expectUnchanged(person: Person) {
  expect((await auth.ask(contract.me, { token: person.token })).status).toBe(200);
  expect(await rowsOf(person.id)).toEqual(expect.arrayContaining(['user', 'session', 'person']));
  expect(await rowsOf(person.id)).not.toContain('deleted_user');
}

test('deletes the account: only the list of deleted users names it', async () => {
  const person = await auth.person();
  await auth.logIn(person.email, 'a wrong password');
  await auth.sql(`INSERT INTO auth.identity (issuer, subject, user_id) VALUES ('x', 'x', $1)`, person.id);
  expect((await remove(person, { current_password: password })).status).toBe(204);
  expect(await rowsOf(person.id)).toEqual(['deleted_user']);
  expect((await auth.logIn(person.email)).error?.error).toBe('invalid_credentials');
  const newest = `SELECT event, user_id, actor FROM auth.audit WHERE event = 'user_deleted' ORDER BY id DESC LIMIT 1`;
  expect(await auth.sql(newest)).toEqual([{ event: 'user_deleted', user_id: null, actor: 'user' }]);
});

test('refuses a wrong or missing password, and changes nothing', async () => {
  const person = await auth.person();
  for (const body of [undefined, {}, { current_password: 'a wrong password' }, { code: '123456' }])
    expect(await remove(person, body)).toMatchObject(refused);
  await expectUnchanged(person);
  expect(await auth.audited(person.id, 'reauthentication_failed')).toHaveLength(1);
});

test('refuses if the password is changed during the request', async () => {
  const person = await auth.person();
  const reply = auth.whileHeld(
    (query) => createUserStore(query).setPassword(person.id, 'x'),
    () => remove(person, { current_password: password }),
  );
  expect(await reply).toMatchObject(refused);
  expect(await rowsOf(person.id)).toContain('user');
});

test('with a second factor, needs the code as well, which a refusal does not use up', async () => {
  await auth.sql(`UPDATE auth.user SET roles = '{user}'`);
  const person = await auth.person({}, 'admin');
  const { secret } = await enrol(auth.origin, person.token);
  const code = codeOf(secret);
  const wrong = codeOf(secret, 120);
  expect(await remove(person, { current_password: password })).toMatchObject(refused);
  expect(await remove(person, { current_password: password, code: wrong })).toMatchObject(refused);
  expect(await remove(person, { current_password: 'a wrong password', code })).toMatchObject(refused);
  expect((await remove(person, { current_password: password, code })).error?.error).toBe('last_admin');
  await expectUnchanged(person);
  expect(await rowsOf(person.id)).toContain('totp');
  await auth.person({}, 'admin');
  expect((await remove(person, { current_password: password, code })).status).toBe(204);
  expect(await rowsOf(person.id)).toEqual(['deleted_user']);
});

describe('a user without a password', () => {
  const identityUser = async () => {
    const person = await auth.person();
    await auth.sql('UPDATE auth.user SET password_hash = NULL WHERE id = $1', person.id);
    return person;
  };

  test('deletes the account after a recent login at the identity provider', async () => {
    const person = await identityUser();
    expect((await remove(person)).status).toBe(204);
    expect(await rowsOf(person.id)).toEqual(['deleted_user']);
  });

  test('must log in again if that login is old, and cannot guess a password', async () => {
    const person = await identityUser();
    expect(await remove(person, { current_password: password })).toMatchObject(refused);
    await auth.ageLogins(person.id);
    expect(await remove(person)).toMatchObject(refused);
    await expectUnchanged(person);
  });
});

test.each([
  ['deleted', 'DELETE FROM auth.user WHERE id = $1'],
  ['disabled', 'UPDATE auth.user SET disabled = true WHERE id = $1'],
])('refuses the token of a user who was %s meanwhile', async (_, statement) => {
  const { id, token } = await auth.person();
  await auth.sql(statement, id);
  const answer = await auth.ask(contract.me, { token });
  expect(answer.error).toMatchObject({ error: 'invalid_token', code: 401 });
  expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
});
