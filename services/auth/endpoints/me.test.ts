import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { me } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { startAuth, type TestAuth } from '../testing/start-auth.ts';

let auth: TestAuth;

beforeAll(async () => {
  auth = await startAuth();
});
afterAll(() => auth.stop());

test("returns the user's profile", async () => {
  const { id, email, token } = await auth.person({}, 'user', 'sre');
  const { createdAt } = (await auth.stores.users.findById(id))!;
  const answer = await call(auth.origin, me, { token });
  const roles = ['user', 'sre'];
  expect(answer.body).toEqual({
    id,
    email,
    name: 'A Person',
    roles,
    created_at: createdAt.toISOString(),
    mfa_enabled: false,
  });
});

test.each([
  ['deleted', 'DELETE FROM auth.user WHERE id = $1'],
  ['disabled', 'UPDATE auth.user SET disabled = true WHERE id = $1'],
])('refuses the token of a user who was %s meanwhile', async (_, statement) => {
  const { id, token } = await auth.person();
  await auth.sql(statement, id);
  const answer = await call(auth.origin, me, { token });
  expect(answer.error).toMatchObject({ error: 'invalid_token', code: 401 });
  expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
});
