import { expect, test } from '@jest/globals';
import { changePassword, login } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { logIn, newUser, refresh } from '../../../test/support/accounts.ts';
import { untilRefused } from '../../../test/support/revoked.ts';
import { stack } from '../../../test/support/stack.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const new_password = 'eleven quiet herons read maps';
/** Valid but refused, so that the demo account keeps its password. */
const example = { current_password: 'not the password', new_password };

const invalid = {
  fields: {
    current_password: [undefined, ''],
    new_password: [undefined, `${new_password}\0`, 'x'.repeat(1_025), ['x']],
    email: ['admin@example.com'],
  },
};

describeEndpoint(changePassword, { body: example, invalid }, ({ ask }) => {
  test('replaces the password and ends all sessions', async () => {
    const user = await newUser();
    const elsewhere = await logIn(user.email, user.password);
    const body = { current_password: user.password, new_password };
    expect(await ask({ token: user.token, body })).toMatchObject({ status: 204 });
    await Promise.all([user, elsewhere].map(({ token }) => untilRefused(token)));
    expect(await refresh(elsewhere.refreshToken)).toMatchObject({ reason: 'revoked' });
    expect((await logIn(user.email, new_password)).token).toBeTruthy();
    const old = { email: user.email, password: user.password };
    const { error } = await call(stack().gateway, login, { body: old });
    expect(error?.error).toBe('invalid_credentials');
  });
});
