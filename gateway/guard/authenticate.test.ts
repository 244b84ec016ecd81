import { expect, test } from '@jest/globals';
import { generateKeyPairSync } from 'node:crypto';
import { HttpError } from '@content-platform/chassis';
import type { ErrorEnvelope } from '@content-platform/contract';
import { machineToken, mint, withScopes } from '../testing/tokens.ts';
import { useTestGateway } from '../testing/use-test-gateway.ts';

const fixture = useTestGateway({});

async function ask(path: string, authorization?: string, method = 'GET') {
  const headers: Record<string, string> = authorization === undefined ? {} : { Authorization: authorization };
  const response = await fixture.ask(path, { method, headers });
  const { error } = (await response.json()) as ErrorEnvelope;
  return { status: response.status, error, challenge: response.headers.get('www-authenticate') };
}

const { privateKey: strangersKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

test.each<[string, string | undefined, string]>([
  ['nothing', undefined, 'token_required'],
  ['Basic', 'Basic eDp5', 'token_required'],
  ['no space after Bearer', 'Bearerabc', 'token_required'],
  ['no token', 'Bearer', 'invalid_token'],
  ['two tokens', `Bearer ${mint()} ${mint()}`, 'invalid_token'],
  ['two spaces after Bearer', `Bearer  ${mint()}`, 'invalid_token'],
  ['noise', 'Bearer x', 'invalid_token'],
  ["a stranger's signature", `Bearer ${mint({}, strangersKey)}`, 'invalid_token'],
  ['an expired token', `Bearer ${mint({ exp: 1 })}`, 'invalid_token'],
  ['a claim of another type', `Bearer ${mint({ must_change_password: 'true' })}`, 'invalid_token'],
])('returns 401 for %s and forwards nothing', async (_, authorization, error) => {
  const answer = await ask('/api/me', authorization);
  expect(answer).toMatchObject({ status: 401, error });
  expect(answer.challenge).toMatch(/^Bearer/);
  expect(fixture.upstream.received).toEqual([]);
});

test.each([
  ["a user's token, where a scope is required", 403, '/api/admin/failed-jobs', mint()],
  ['another scope', 403, '/api/admin/failed-jobs', withScopes('cache:clear')],
  ['a scope that only begins like it', 403, '/api/admin/failed-jobs', withScopes('jobs:manage2', 'jobs')],
  ['the scope', 200, '/api/admin/failed-jobs', withScopes('cache:clear', 'jobs:manage')],
  ['a machine, where a user is required', 403, '/api/me', machineToken('cms', 'cache:clear')],
  ['one of two scopes', 200, '/api/admin/cache/invalidations', withScopes('jobs:manage')],
  ['none of two scopes', 403, '/api/admin/cache/invalidations', withScopes('users:admin')],
  ['a user', 200, '/api/me', mint()],
  ['a machine without the scope to read', 403, '/api/content/webform/1', machineToken('cms', 'cache:clear')],
  ['a machine with the scope to read', 200, '/api/content/webform/1', machineToken('cms', 'content:read')],
  ['a user without scopes, to read', 200, '/api/content/webform/1', mint()],
])('%s: returns %i', async (_, status, path, token) => {
  expect((await ask(path, `bEARER ${token}`)).status).toBe(status);
  expect(fixture.upstream.received).toHaveLength(status === 200 ? 1 : 0);
});

test.each([
  ['password_change_required', 'GET', '/api/sessions', 403],
  ['password_change_required', 'GET', '/api/content/webform/1', 403],
  ['password_change_required', 'GET', '/api/admin/failed-jobs', 403],
  ['password_change_required', 'GET', '/api/admin/users', 403],
  ['password_change_required', 'GET', '/api/me', 200],
  ['password_change_required', 'POST', '/api/logout', 200],
  ['password_change_required', 'POST', '/api/password', 200],
  ['mfa_enrollment_required', 'GET', '/api/content/webform/1', 403],
  ['mfa_enrollment_required', 'GET', '/api/admin/users', 403],
  ['mfa_enrollment_required', 'GET', '/api/me', 200],
  ['mfa_enrollment_required', 'POST', '/api/mfa/totp', 200],
])('with a token that leads to %s, %s %s is %i', async (error, method, path, status) => {
  const claim = error === 'mfa_enrollment_required' ? error : 'must_change_password';
  const token = mint({ [claim]: true, scope: 'users:admin jobs:manage' });
  const answer = await ask(path, `Bearer ${token}`, method);
  expect(answer).toMatchObject({ status, ...(status === 403 && { error }) });
  expect(fixture.upstream.received).toHaveLength(status === 200 ? 1 : 0);
});

test('forwards any Authorization header to a public endpoint', async () => {
  expect((await ask('/.well-known/jwks.json', 'Basic eDp5')).status).toBe(200);
  expect(fixture.upstream.received[0]!.headers.authorization).toBe('Basic eDp5');
});

test('returns 503, not 401, while the keys are unavailable', async () => {
  const verify = () => Promise.reject(new HttpError('service_unavailable', 'No keys.'));
  await fixture.start({ tokens: { verify } });
  expect((await ask('/api/me', `Bearer ${mint()}`)).status).toBe(503);
});
