import { expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { ageSession, emails, logIn, newUser, password } from '../../../test/support/accounts.ts';
import { stack } from '../../../test/support/stack.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const { gateway } = stack();

const reauthenticateExample = {
  body: { password },
  invalid: { fields: { password: ['', undefined], code: ['123456'] } },
} as const;
describeEndpoint(contract.reauthenticate, reauthenticateExample, ({ ask }) => {
  test('makes an old session a recent login', async () => {
    const { token } = await logIn(emails.admin, password);
    await ageSession(token);
    const { id } = await newUser();
    const remove = () => call(gateway, contract.deleteUser, { params: { id }, token });
    expect((await remove()).error).toMatchObject({ error: 'reauthentication_required', code: 403 });
    expect((await ask({ token, body: { password } })).status).toBe(204);
    expect((await remove()).status).toBe(204);
  });

  test('returns 401 for a wrong password and keeps the session', async () => {
    const user = await newUser();
    const { error } = await ask({ token: user.token, body: { password: 'not the password' } });
    expect(error).toMatchObject({ error: 'invalid_credentials', code: 401 });
    expect((await call(gateway, contract.me, { token: user.token })).status).toBe(200);
  });
});
