import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { login, me, token as tokenEndpoint } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { startAuth, type TestAuth } from '../testing.ts';

const password = 'a-password-to-keep';
let auth: TestAuth;

beforeAll(async () => {
  auth = await startAuth();
});
afterAll(() => auth.stop());

async function logIn(email: string): Promise<string> {
  await auth.addUser(email, password, 'user', 'sre');
  const answer = await call(auth.origin, login, { body: { email, password } });
  return answer.body!.token;
}

test('a person sees who they are', async () => {
  const answer = await call(auth.origin, me, { token: await logIn('ann@example.com') });
  const stored = (await auth.accounts.users.findByEmail('ann@example.com'))!;
  expect(answer.body).toEqual({
    id: stored.id,
    email: 'ann@example.com',
    name: 'A Person',
    roles: ['user', 'sre'],
    created_at: stored.createdAt.toISOString(),
  });
});

test.each([
  ['deleted', `DELETE FROM auth.user WHERE email = 'deleted@example.com'`],
  ['disabled', `UPDATE auth.user SET disabled = true WHERE email = 'disabled@example.com'`],
])('the token of a user who was %s meanwhile is not taken', async (what, statement) => {
  const token = await logIn(`${what}@example.com`);
  await auth.database.query('change', statement);
  const answer = await call(auth.origin, me, { token });
  expect(answer.error).toMatchObject({ error: 'invalid_token', code: 401 });
  expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
});

test('a machine is not a person', async () => {
  await auth.addClient('cms', 'cms-secret');
  const body = { grant_type: 'client_credentials', client_id: 'cms', client_secret: 'cms-secret' };
  const { access_token: token } = (await call(auth.origin, tokenEndpoint, { body })).body!;
  expect((await call(auth.origin, me, { token })).error?.error).toBe('insufficient_scope');
});

test('without a token there is no answer', async () => {
  expect((await call(auth.origin, me)).error?.error).toBe('token_required');
});
