import { beforeAll, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newAddress, newUser, tokenOf, type OwnUser } from '../../../test/support/accounts.ts';
import { stack } from '../../../test/support/stack.ts';
import { codeOf, enrol, mfaTokenOf } from '../../../test/support/totp.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const { gateway } = stack();
const badCodes = ['', '12345', '1234567', 'abcdef', 123456];

let user: OwnUser;
let factor: Awaited<ReturnType<typeof enrol>>;
beforeAll(async () => {
  user = await newUser();
  factor = await enrol(gateway, user.token);
});

function signIn({ email, password }: OwnUser) {
  const headers = { 'X-Forwarded-For': newAddress() };
  return call(gateway, contract.login, { body: { email, password }, headers });
}
const begin = async (own = user) => mfaTokenOf(await signIn(own));

const loginMfaExample = {
  body: { mfa_token: 'x', code: '123456' },
  invalid: { fields: { code: [...badCodes, undefined], mfa_token: [''], recovery_code: ['x'] } },
} as const;
describeEndpoint(contract.loginMfa, loginMfaExample, ({ ask }) => {
  test('completes a login with a code or a recovery code', async () => {
    const token = await begin();
    const { body } = await ask({ body: { mfa_token: token, code: codeOf(factor.secret) } });
    expect((await call(gateway, contract.me, { token: body!.token })).body).toMatchObject({ id: user.id });
    const recovery_code = factor.recoveryCodes[0]!;
    expect((await ask({ body: { mfa_token: await begin(), recovery_code } })).status).toBe(200);
  });

  test('returns 401 for a wrong code', async () => {
    const { error } = await ask({ body: { mfa_token: await begin(), recovery_code: 'wrong' } });
    expect(error).toMatchObject({ error: 'invalid_credentials', code: 401 });
  });
});

describeEndpoint(contract.beginTotp, {}, ({ ask }) => {
  test('returns a secret for an authenticator app, and 409 once one is set up', async () => {
    const { token, email } = await newUser();
    const { status, body } = await ask({ token });
    expect(status).toBe(201);
    expect(body!.secret).toMatch(/^[A-Z2-7]{32}$/);
    expect(decodeURIComponent(body!.uri)).toContain(email);
    expect((await ask({ token: user.token })).error?.error).toBe('mfa_enabled');
  });
});

const confirmTotpExample = { body: { code: '123456' }, invalid: { fields: { code: badCodes } } };
describeEndpoint(contract.confirmTotp, confirmTotpExample, ({ ask }) => {
  test('turns the second factor on with the first code', async () => {
    const { token } = await newUser();
    expect((await ask({ token, body: { code: '123456' } })).error?.error).toBe('invalid_code');
    const { body: begun } = await call(gateway, contract.beginTotp, { token });
    const code = codeOf(begun!.secret);
    const { body } = await ask({ token, body: { code } });
    expect(new Set(body!.recovery_codes).size).toBe(10);
    expect((await ask({ token, body: { code } })).error?.error).toBe('mfa_enabled');
  });
});

const deleteTotpExample = {
  body: { code: '123456' },
  isMissing: true,
  invalid: { fields: { code: badCodes, recovery_code: ['x'] } },
} as const;
describeEndpoint(contract.deleteTotp, deleteTotpExample, ({ ask }) => {
  test('turns the second factor off with a code, not with the session alone', async () => {
    const own = await newUser();
    const { secret } = await enrol(gateway, own.token);
    const { error } = await ask({ token: own.token, body: { recovery_code: 'wrong' } });
    expect(error?.error).toBe('invalid_code');
    await begin(own);
    expect((await ask({ token: own.token, body: { code: codeOf(secret) } })).status).toBe(204);
    expect((await signIn(own)).status).toBe(200);
  });
});

describeEndpoint(contract.deleteUserMfa, {}, ({ ask }) => {
  test('removes the second factor of a user who has lost it', async () => {
    const own = await newUser();
    await enrol(gateway, own.token);
    expect((await ask({ params: { id: own.id } })).status).toBe(204);
    expect((await ask({ params: { id: own.id } })).error?.error).toBe('not_found');
    const token = await tokenOf(gateway, 'admin');
    const { body } = await call(gateway, contract.readUser, { params: { id: own.id }, token });
    expect(body).toMatchObject({ mfa_enabled: false });
  });
});
