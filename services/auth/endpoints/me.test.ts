import { expect, test } from '@jest/globals';
import { me } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { useAuth } from '../testing/start-auth.ts';

const auth = useAuth();

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
