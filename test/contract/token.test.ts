import { expect, test } from '@jest/globals';
import { token } from '@content-platform/contract';
import { emails, machine, password } from '../support/accounts.ts';
import { describeEndpoint } from './describe-endpoint.ts';

const grant_type = 'client_credentials';
const credentials = { grant_type, client_id: machine.id, client_secret: machine.secret };
const basic = (id: string, secret: string) => ({
  Authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
});

describeEndpoint(token, { path: '/api/token', body: credentials }, ({ ask, send }) => {
  test('credentials in a form, in JSON or as Basic: a token with the client’s scopes', async () => {
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

  test('a wrong secret, an unknown client and a person’s password: 401', async () => {
    const wrong = await ask({ body: { grant_type }, headers: basic(machine.id, 'wrong') });
    expect(wrong.error).toMatchObject({ error: 'invalid_client', code: 401 });
    expect(wrong.headers.get('www-authenticate')).toMatch(/^Basic/);
    for (const [id, secret] of [
      ['nobody', machine.secret],
      [emails.admin, password],
    ] as const) {
      const { error } = await ask({ body: { grant_type, client_id: id, client_secret: secret } });
      expect(error?.error).toBe('invalid_client');
    }
  });

  test('other grants, scopes it does not have, two ways to log in: the errors of RFC 6749', async () => {
    const other = await ask({ body: { ...credentials, grant_type: 'password' } });
    expect(other.error?.error).toBe('unsupported_grant_type');
    const more = await ask({ body: { ...credentials, scope: 'cache:clear jobs:manage' } });
    expect(more.error?.error).toBe('invalid_scope');
    const both = await ask({ body: credentials, headers: basic(machine.id, machine.secret) });
    expect(both.error?.error).toBe('invalid_request');
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const twice = await send({ body: 'grant_type=client_credentials&grant_type=password', headers: form });
    expect(twice.error?.error).toBe('invalid_request');
  });
});
