import { expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { linkIdentity, logIn, newUser, refresh, tokenOf } from '../../../test/support/accounts.ts';
import { untilRefused } from '../../../test/support/revoked.ts';
import { stack } from '../../../test/support/stack.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const { gateway, services } = stack();
const new_password = 'eleven quiet herons read maps';

const createTemporaryPasswordExample = {
  body: { expires_in: 3_600 },
  invalid: {
    fields: {
      expires_in: [59, 604_801, 60.5, '60'],
      compromised: ['yes'],
      password: ['chosen by an administrator'],
    },
  },
} as const;
describeEndpoint(contract.createTemporaryPassword, createTemporaryPasswordExample, ({ ask }) => {
  test('allows one login, which can only set a new password', async () => {
    const { id, email, password, token: own } = await newUser('sre');
    const answer = await ask({ params: { id } });
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const { temporary_password: temporary, expires_at } = answer.body!;
    expect(temporary).toMatch(/^([2-9a-km-np-z]{4}-){3}[2-9a-km-np-z]{4}$/);
    expect(Math.abs(Date.parse(expires_at) - Date.now() - 86_400_000)).toBeLessThan(60_000);

    const body = { email, password: temporary };
    const first = await call(gateway, contract.login, { body });
    expect(first).toMatchObject({ status: 200, body: { must_change_password: true } });
    const second = await call(gateway, contract.login, { body });
    expect(second.error?.error).toBe('invalid_credentials');

    const refreshed = await refresh(first.body!.refresh_token);
    for (const token of [first.body!.token, refreshed.body!.access_token]) await expectRestricted(token);
    // The user's other session and old password still work.
    expect((await call(gateway, contract.listSessions, { token: own })).status).toBe(200);
    expect((await logIn(email, password)).token).toBeTruthy();

    const change = { current_password: temporary, new_password };
    const options = { body: change, token: refreshed.body!.access_token };
    expect((await call(gateway, contract.changePassword, options)).status).toBe(204);
    await untilRefused(own);
    const { token } = await logIn(email, new_password);
    expect((await call(gateway, contract.listSessions, { token })).status).toBe(200);
  });

  test('takes a compromised password and linked identities away', async () => {
    const { id, email, password, token } = await newUser();
    await linkIdentity(id);
    const { body } = await ask({ params: { id }, body: { compromised: true } });
    const guess = { body: { email, password } };
    expect((await call(gateway, contract.login, guess)).error?.error).toBe('invalid_credentials');
    await untilRefused(token);
    const admin = await tokenOf(gateway, 'admin');
    const user = await call(gateway, contract.readUser, { params: { id }, token: admin });
    expect(user.body).toMatchObject({ identities: [] });
    expect((await logIn(email, body!.temporary_password)).token).toBeTruthy();
  });

  test('ends a session with a temporary password on logout', async () => {
    const { id, email } = await newUser();
    const { body } = await ask({ params: { id }, body: { expires_in: 60 } });
    const { token } = await logIn(email, body!.temporary_password);
    expect((await call(gateway, contract.logout, { token })).status).toBe(204);
    await untilRefused(token);
  });
});

/** Expects that the token only reaches the endpoints needed to set a password, through the gateway and directly. */
async function expectRestricted(token: string): Promise<void> {
  const auth = services['auth']!.public;
  const content = services['content-cache']!.public;
  for (const at of [gateway, auth]) {
    expect((await call(at, contract.me, { token })).status).toBe(200);
    const { error } = await call(at, contract.listSessions, { token });
    expect(error).toMatchObject({ error: 'password_change_required', code: 403 });
  }
  for (const at of [gateway, content]) {
    const params = { model: 'webform', id: 1 };
    const read = await call(at, contract.readContent, { params, token });
    expect(read.error).toMatchObject({ error: 'password_change_required', code: 403 });
    const jobs = await call(at, contract.listFailedJobs, { token });
    expect(jobs.error).toMatchObject({ error: 'password_change_required', code: 403 });
  }
}
