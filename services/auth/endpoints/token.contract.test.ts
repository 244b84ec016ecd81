import { expect, test } from '@jest/globals';
import { logout, token } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { emails, machine, newUser, password } from '../../../test/support/accounts.ts';
import { isAcceptedEverywhere } from '../../../test/support/revoked.ts';
import { stack } from '../../../test/support/stack.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const grant_type = 'client_credentials';
const credentials = { grant_type, client_id: machine.id, client_secret: machine.secret };
const basic = (id: string, secret: string) => ({
  Authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
});

describeEndpoint(token, { body: credentials }, ({ ask, send }) => {
  test("accepts credentials in a form, in JSON and as Basic; the token has the client's scopes", async () => {
    const form = await ask({ body: credentials });
    expect(form).toMatchObject({
      status: 200,
      body: { token_type: 'Bearer', expires_in: 900, scope: 'cache:clear' },
    });
    expect(form.headers.get('cache-control')).toBe('no-store');
    expect(await send({ body: JSON.stringify(credentials) })).toMatchObject({ status: 200 });
    const headers = basic(machine.id, machine.secret);
    expect(await ask({ body: { grant_type }, headers })).toMatchObject({ status: 200 });
    expect(await ask({ body: { grant_type, scope: 'cache:clear' }, headers })).toMatchObject({ status: 200 });
  });

  test("returns 401 for a wrong secret and a user's password", async () => {
    const wrong = await ask({ body: { grant_type }, headers: basic(machine.id, 'wrong') });
    expect(wrong.error).toMatchObject({ error: 'invalid_client', code: 401 });
    expect(wrong.headers.get('www-authenticate')).toMatch(/^Basic/);
    const user = { client_id: emails.admin, client_secret: password };
    expect((await ask({ body: { grant_type, ...user } })).error?.error).toBe('invalid_client');
  });

  test('returns the errors of RFC 6749 for other grants, foreign scopes and two login methods', async () => {
    const other = await ask({ body: { ...credentials, grant_type: 'password' } });
    expect(other.error?.error).toBe('unsupported_grant_type');
    const more = await ask({ body: { ...credentials, scope: 'cache:clear jobs:manage' } });
    expect(more.error?.error).toBe('invalid_scope');
    const both = await ask({ body: credentials, headers: basic(machine.id, machine.secret) });
    expect(both.error?.error).toBe('invalid_request');
  });

  test('issues new tokens for a refresh token; reuse within seconds returns the same successor', async () => {
    const { refreshToken: refresh_token } = await newUser('sre');
    const refresh = { grant_type: 'refresh_token', refresh_token };
    const first = await ask({ body: refresh });
    expect(first).toMatchObject({
      status: 200,
      body: { token_type: 'Bearer', expires_in: 900, scope: 'jobs:manage pulse:view' },
    });
    expect(first.headers.get('cache-control')).toBe('no-store');
    expect(await isAcceptedEverywhere(first.body!.access_token)).toBe(true);
    const successor = first.body!.refresh_token!;
    expect(successor).not.toBe(refresh_token);
    expect((await ask({ body: refresh })).body!.refresh_token).toBe(successor);
    const second = await ask({ body: { ...refresh, refresh_token: successor } });
    expect(second.body!.refresh_token).not.toBe(successor);
    // Another browser tab may still hold the old token: it also gets the current successor.
    const late = await ask({ body: refresh });
    expect(late.body!.refresh_token).toBe(second.body!.refresh_token);
  });

  test('returns invalid_grant with the reason revoked after the session ended', async () => {
    const user = await newUser();
    await call(stack().gateway, logout, { token: user.token });
    const { error } = await ask({ body: { grant_type: 'refresh_token', refresh_token: user.refreshToken } });
    expect(error).toMatchObject({
      error: 'invalid_grant',
      code: 400,
      details: [{ path: 'reason', message: 'revoked' }],
    });
  });

  test.each(['x', 'x'.repeat(43), machine.secret])(
    'returns invalid_grant with the reason unknown for the refresh token %.10j',
    async (refresh_token) => {
      const { error } = await ask({ body: { grant_type: 'refresh_token', refresh_token } });
      expect(error).toMatchObject({ error: 'invalid_grant', details: [{ message: 'unknown' }] });
    },
  );

  test('returns invalid_request for a missing or impossible refresh token', async () => {
    for (const more of [{}, { refresh_token: '' }, { refresh_token: '\0' }]) {
      const { error } = await ask({ body: { grant_type: 'refresh_token', ...more } });
      expect(error?.error).toBe('invalid_request');
    }
  });
});
