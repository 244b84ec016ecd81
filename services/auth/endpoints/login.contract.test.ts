import { expect, test } from '@jest/globals';
import { login } from '@content-platform/contract';
import { emails, newUser, password } from '../../../test/support/accounts.ts';
import { stack } from '../../../test/support/stack.ts';
import { enrol } from '../../../test/support/totp.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const body = { email: emails.user, password };
const invalid = {
  fields: {
    email: ['', `${emails.user}\0`, { $ne: null }],
    password: [undefined, '\ud800', { $ne: null }],
    remember: [true],
  },
};

describeEndpoint(login, { body, invalid }, ({ ask }) => {
  test('returns a token and the user for the right password', async () => {
    const answer = await ask({ body });
    expect(answer).toMatchObject({
      status: 200,
      body: { token_type: 'Bearer', expires_in: 900, user: { email: emails.user } },
    });
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  test('ignores the case of the email, and a space after it', async () => {
    expect((await ask({ body: { ...body, email: `${emails.user.toUpperCase()} ` } })).status).toBe(200);
  });

  test('asks a user with a second factor for the code', async () => {
    const { email, password, token } = await newUser();
    await enrol(stack().gateway, token);
    const { status, error } = await ask({ body: { email, password } });
    expect([status, error?.error]).toEqual([401, 'mfa_required']);
    expect(error?.details?.map(({ path }) => path)).toEqual(['mfa_token', 'expires_in']);
  });

  test('returns the same error for a wrong password and an unknown email', async () => {
    const wrong = await ask({ body: { ...body, password: 'not-the-password' } });
    const unknown = await ask({ body: { ...body, email: 'unknown@example.com' } });
    expect(wrong.error).toMatchObject({ error: 'invalid_credentials', code: 401 });
    expect(wrong.headers.get('www-authenticate')).toBe('Bearer');
    expect({ ...unknown.error, request_id: '' }).toEqual({ ...wrong.error, request_id: '' });
    const names = (headers: Headers) => [...headers.keys()].toSorted();
    expect(names(unknown.headers)).toEqual(names(wrong.headers));
  });
});
