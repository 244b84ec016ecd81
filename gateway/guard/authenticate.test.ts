import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { createHmac, createPublicKey } from 'node:crypto';
import { HttpError } from '@content-platform/chassis';
import type { ErrorEnvelope } from '@content-platform/contract';
import { startGateway, type TestGateway } from '../testing/gateway.ts';
import { machineToken, mint, publicKeyPem, strangersKey, withScopes } from '../testing/tokens.ts';
import { startUpstream, type RecordingUpstream } from '../testing/upstream.ts';

let upstream: RecordingUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ services: { auth: upstream.url, 'content-cache': upstream.url } });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => void upstream.received.splice(0));

async function ask(path: string, authorization?: string, method = 'GET') {
  const headers: Record<string, string> = authorization === undefined ? {} : { Authorization: authorization };
  const response = await fetch(gateway.origin + path, { method, headers });
  const { error } = (await response.json()) as ErrorEnvelope;
  return { status: response.status, error, challenge: response.headers.get('www-authenticate') };
}

const now = () => Math.floor(Date.now() / 1000);
const none = `${Buffer.from('{"alg":"none","typ":"at+jwt","kid":"test-key"}').toString('base64url')}.${mint().split('.')[1]}.`;
function hmac(): string {
  const [, claims] = mint().split('.');
  const text = `${Buffer.from('{"alg":"HS256","typ":"at+jwt","kid":"test-key"}').toString('base64url')}.${claims}`;
  return `${text}.${createHmac('sha256', publicKeyPem).update(text).digest('base64url')}`;
}
const theirJwk = createPublicKey(strangersKey).export({ format: 'jwk' });

test.each<[string, string | undefined, string]>([
  ['nothing', undefined, 'token_required'],
  ['Basic', 'Basic eDp5', 'token_required'],
  ['no token', 'Bearer', 'invalid_token'],
  ['two tokens', `Bearer ${mint()} ${mint()}`, 'invalid_token'],
  ['noise', 'Bearer x', 'invalid_token'],
  ['alg none', `Bearer ${none}`, 'invalid_token'],
  ['HS256 with the public key', `Bearer ${hmac()}`, 'invalid_token'],
  ["another one's key", `Bearer ${mint({}, {}, strangersKey)}`, 'invalid_token'],
  [
    "another one's key, brought along",
    `Bearer ${mint({}, { jwk: theirJwk, kid: 'theirs' }, strangersKey)}`,
    'invalid_token',
  ],
  ['an unknown kid', `Bearer ${mint({}, { kid: '../../etc/passwd' })}`, 'invalid_token'],
  ['another type', `Bearer ${mint({}, { typ: 'JWT' })}`, 'invalid_token'],
  ['another issuer', `Bearer ${mint({ iss: 'http://other' })}`, 'invalid_token'],
  ['another audience', `Bearer ${mint({ aud: 'other' })}`, 'invalid_token'],
  ['an expired one', `Bearer ${mint({ exp: now() - 1 })}`, 'invalid_token'],
  ['one that never expires', `Bearer ${mint({ exp: undefined })}`, 'invalid_token'],
  ['trailing data', `Bearer ${mint()}.x`, 'invalid_token'],
  ['a longer signature', `Bearer ${mint()}AA`, 'invalid_token'],
])('%s: 401, and nothing arrives', async (_, authorization, error) => {
  const answer = await ask('/api/me', authorization);
  expect(answer).toMatchObject({ status: 401, error });
  expect(answer.challenge).toMatch(/^Bearer/);
  expect(upstream.received).toEqual([]);
});

test.each([
  ["a person's token, where a scope is asked for", '/api/admin/failed-jobs', mint(), 403],
  ['another scope', '/api/admin/failed-jobs', withScopes('cache:clear'), 403],
  ['a scope that only begins like it', '/api/admin/failed-jobs', withScopes('jobs:manage2', 'jobs'), 403],
  ['the scope', '/api/admin/failed-jobs', withScopes('cache:clear', 'jobs:manage'), 200],
  ['a machine, where a person is asked for', '/api/me', machineToken('cms', 'cache:clear'), 403],
  ['a person', '/api/me', mint(), 200],
  ['a machine, where any token will do', '/api/content/webform/1', machineToken('cms'), 200],
])('%s', async (_, path, token, status) => {
  expect((await ask(path, `Bearer ${token}`)).status).toBe(status);
  expect(upstream.received).toHaveLength(status === 200 ? 1 : 0);
});

test('a token from a temporary password leads to a password, and nowhere else', async () => {
  const token = mint({ must_change_password: true, scope: 'users:admin jobs:manage' });
  for (const path of [
    '/api/sessions',
    '/api/content/webform/1',
    '/api/admin/failed-jobs',
    '/api/admin/users',
  ]) {
    const answer = await ask(path, `Bearer ${token}`);
    expect(answer).toMatchObject({ status: 403, error: 'password_change_required' });
  }
  expect(upstream.received).toEqual([]);
  for (const [path, method] of [
    ['/api/me', 'GET'],
    ['/api/logout', 'POST'],
    ['/api/password', 'POST'],
  ] as const)
    expect((await ask(path, `Bearer ${token}`, method)).status).toBe(200);
});

test('a public endpoint takes any Authorization, and hands it on', async () => {
  expect((await ask('/.well-known/jwks.json', 'Basic eDp5')).status).toBe(200);
  expect(upstream.received[0]!.headers.authorization).toBe('Basic eDp5');
});

test('while the keys cannot be had, nobody knows: 503, not 401', async () => {
  const verify = () => Promise.reject(new HttpError('service_unavailable', 'No keys.'));
  const blind = await startGateway({
    services: { auth: upstream.url, 'content-cache': upstream.url },
    tokens: { verify },
  });
  const response = await fetch(`${blind.origin}/api/me`, { headers: { Authorization: `Bearer ${mint()}` } });
  expect(response.status).toBe(503);
  await blind.close();
});
