import { beforeAll, expect, test } from '@jest/globals';
import { token } from '@content-platform/contract';
import type { CallOptions } from '@content-platform/contract/client';
import { createClientStore, type ClientStore } from '../client-store.ts';
import { decode, issuer, useAuth, visible } from '../testing/start-auth.ts';

const grant_type = 'client_credentials';
const secret = 'p+a ss:wörd%2B&=';
const inBody = { grant_type, client_id: 'cms', client_secret: secret };
const auth = useAuth();
beforeAll(async () => {
  await auth.addClient('cms', secret, 'cache:clear', 'jobs:manage');
  await auth.addClient('idle', secret);
  await auth.addClient('gone', secret, 'cache:clear');
  await auth.sql(`UPDATE auth.client SET disabled = true WHERE name = 'gone'`);
});

const ask = (options: CallOptions<typeof token>) => auth.ask(token, options);

function basic(id: string, key: string) {
  const encode = (value: string) => new URLSearchParams({ '': value }).toString().slice(1);
  return { Authorization: `Basic ${Buffer.from(`${encode(id)}:${encode(key)}`).toString('base64')}` };
}

test('returns a machine client a token with exactly these claims', async () => {
  const { body, headers } = await ask({ body: inBody });
  expect(headers.get('pragma')).toBe('no-cache');
  const { header, claims } = decode(body!.access_token);
  expect(header).toEqual({ alg: 'RS256', typ: 'at+jwt', kid: auth.keys.current.kid });
  const { iat } = claims as { iat: number };
  expect(claims).toEqual({
    iss: issuer,
    aud: 'content-platform',
    sub: 'cms',
    client_id: 'cms',
    jti: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
    iat,
    exp: iat + 900,
    scope: 'cache:clear jobs:manage',
  });
});

test('accepts the same client_id beside Basic', async () => {
  const headers = basic('cms', secret);
  expect(await ask({ body: { grant_type, client_id: 'cms' }, headers })).toMatchObject({ status: 200 });
  for (const body of [inBody, { grant_type, client_secret: secret }, { grant_type, client_id: 'idle' }])
    expect((await ask({ body, headers })).error).toMatchObject({ error: 'invalid_request', code: 400 });
});

test.each([
  ['cms', undefined, 'cache:clear jobs:manage'],
  ['cms', '', 'cache:clear jobs:manage'],
  ['cms', 'jobs:manage', 'jobs:manage'],
  ['cms', 'jobs:manage cache:clear', 'cache:clear jobs:manage'],
  ['cms', 'jobs:manage jobs:manage', 'jobs:manage'],
  ['idle', undefined, ''],
])('%s, asked for the scope %j, is given %j', async (client_id, scope, given) => {
  const { body } = await ask({ body: { ...inBody, client_id, ...(scope !== undefined && { scope }) } });
  expect(body?.scope).toBe(given);
  expect(decode(body!.access_token).claims['scope']).toBe(given);
});

test.each(['users:admin', 'cache:clear users:admin', ' ', 'cache:clear  jobs:manage', 'Cache:clear'])(
  'refuses the scope %j that the client does not have',
  async (scope) => {
    expect((await ask({ body: { ...inBody, scope } })).error?.error).toBe('invalid_scope');
  },
);

test('compares the grant type case-sensitively', async () => {
  const { error } = await ask({ body: { ...inBody, grant_type: 'CLIENT_CREDENTIALS' } });
  expect(error).toMatchObject({ error: 'unsupported_grant_type', code: 400 });
});

test.each([
  'grant_type=client_credentials&client_id=cms&client_id=cms&client_secret=x',
  'client_id=cms&client_secret=x',
  'grant_type=&client_id=cms&client_secret=x',
  '',
])('refuses the form %j', async (body) => {
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const response = await fetch(`${auth.origin}/api/token`, { method: 'POST', headers, body });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: 'invalid_request' });
});

test.each([
  ['a wrong secret', { body: { ...inBody, client_secret: 'wrong' } }],
  ['a wrong secret as Basic', { body: { grant_type }, headers: basic('cms', 'wrong') }],
  ['an unknown client', { body: { ...inBody, client_id: 'unknown' } }],
  ['a disabled client', { body: { ...inBody, client_id: 'gone' } }],
  ['no client', { body: { grant_type } }],
  ['an id alone', { body: { grant_type, client_id: 'cms' } }],
  ['a NUL in the id', { body: { grant_type }, headers: basic('cm\0s', secret) }],
  ['SQL as the id', { body: { grant_type }, headers: basic(`cms' OR '1'='1`, secret) }],
])('returns 401 with a challenge for %s', async (_, options) => {
  const answer = await ask(options);
  expect(answer.error).toMatchObject({ error: 'invalid_client', code: 401 });
  expect(answer.headers.get('www-authenticate')).toMatch(/^Basic realm="/);
});

test('returns the same reply for a wrong secret and an unknown client', async () => {
  const refuse = (client: string) => auth.askAsClient(client, 'wrong').then(visible);
  const replies = await Promise.all(['cms', 'unknown', 'gone'].map(refuse));
  expect(replies[0]).toMatchObject({ status: 401, error: { error: 'invalid_client' } });
  for (const reply of replies) expect(reply).toEqual(replies[0]);
});

test.each([
  ['rotated', (clients: ClientStore, name: string) => clients.replaceSecretHash(name, 'another')],
  ['disabled', (clients: ClientStore, name: string) => clients.disable(name)],
])(
  'returns no token to a client that is %s meanwhile, because the revocation would miss it',
  async (what, change) => {
    await auth.addClient(what, secret, 'cache:clear');
    const { error } = await auth.whileHeld(
      (query) => change(createClientStore(query), what),
      () => auth.askAsClient(what, secret),
    );
    expect(error?.error).toBe('invalid_client');
  },
);
