import { expect, test } from '@jest/globals';
import { identityLogin } from '@content-platform/contract';
import { createBrowser } from '../../../test/support/identity.ts';
import { sha256 } from '../sessions/opaque-token.ts';
import { returnTo, startIdentityService, useScriptedProvider } from '../testing/identity-fixture.ts';

const challenge = sha256('verifier').toString('base64url');
const query = { return_to: returnTo, state: 'mine', code_challenge: challenge };
const params = { identity: 'identity' };
const { evil, scene } = useScriptedProvider();

const ask = (more: Record<string, string> = {}, headers: Record<string, string> = {}) =>
  scene.auth.ask(identityLogin, { params, query: { ...query, ...more }, headers });

test('redirects the browser with a request that binds the response to this login', async () => {
  const there = new URL((await ask()).headers.get('location')!);
  expect(there.origin + there.pathname).toBe(`${evil.issuer}/authorize`);
  const random = expect.stringMatching(/^[\w-]{43}$/) as unknown;
  expect(Object.fromEntries(there.searchParams)).toEqual({
    response_type: 'code',
    client_id: 'platform',
    redirect_uri: 'http://platform.test/api/identity/login/callback',
    scope: 'openid email profile',
    state: random,
    nonce: random,
    code_challenge: random,
    code_challenge_method: 'S256',
  });
  const again = new URL((await ask()).headers.get('location')!);
  for (const name of ['state', 'nonce', 'code_challenge'])
    expect(again.searchParams.get(name)).not.toBe(there.searchParams.get(name));
});

test('sets a cookie for this host only, and a browser keeps its secret', async () => {
  const cookie = (await ask()).headers.get('set-cookie')!;
  expect(cookie).toMatch(
    /^__Host-identity-login=[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  );
  const pair = cookie.split(';')[0]!;
  expect((await ask({}, { cookie: `a=b; ${pair}` })).headers.get('set-cookie')).toContain(pair);
  const planted = await ask({}, { cookie: '__Host-identity-login=short' });
  expect(planted.headers.get('set-cookie')).not.toContain('=short');
});

test.each<[string, Record<string, string>]>([
  ['another origin', { return_to: 'https://evil.test/signed-in' }],
  ['another path', { return_to: `${returnTo}/more` }],
  ['a query', { return_to: `${returnTo}?next=evil` }],
  ['a fragment', { return_to: `${returnTo}#x` }],
  ['a scheme that runs', { return_to: 'javascript:alert(1)' }],
  ['a challenge that is too short', { code_challenge: 'x'.repeat(42) }],
  ['a challenge that is too long', { code_challenge: 'x'.repeat(44) }],
  ['the weaker method of RFC 7636', { code_challenge_method: 'plain' }],
  ['an empty state', { state: '' }],
  ['a long state', { state: 'x'.repeat(513) }],
])('refuses %s before it starts a login', async (_, more) => {
  const { status, error, headers } = await ask(more);
  expect([status, error?.error]).toEqual([422, 'validation_failed']);
  expect(headers.get('set-cookie')).toBeNull();
});

test.each(['return_to', 'state', 'code_challenge'])('refuses a request without %s', async (name) => {
  const left = Object.fromEntries(Object.entries(query).filter(([one]) => one !== name));
  const { error } = await scene.auth.ask(identityLogin, { params, query: left });
  expect(error?.details).toEqual([{ path: `query.${name}`, message: expect.any(String) as unknown }]);
});

test('returns 502 while the provider is unavailable; other endpoints work', async () => {
  const away = await startIdentityService({ issuer: 'http://127.0.0.1:1' });
  const answer = await away.auth.ask(identityLogin, { params, query });
  expect([answer.status, answer.error?.error]).toEqual([502, 'identity_unavailable']);
  expect(answer.headers.get('set-cookie')).toBeNull();
  expect((await fetch(`${away.auth.origin}/.well-known/jwks.json`)).status).toBe(200);
  await away.stop();
});

test('supports several logins of a browser at once', async () => {
  const browser = createBrowser();
  const [first, second] = [await scene.begin(browser), await scene.begin(browser)];
  for (const { there } of [first, second]) {
    const back = new URL(`http://x/?error=access_denied&state=${there.searchParams.get('state')}`);
    expect(await scene.finish(back, browser)).toMatchObject({ error: 'access_denied' });
  }
});
