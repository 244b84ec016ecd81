import { expect, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { client } from '../../../test/support/identity.ts';
import { exchangeCode, mergeClaims } from './exchange.ts';
import type { IdentityFailure } from './failure.ts';
import { createProvider } from './provider.ts';
import { type EvilProvider, nonce, otherKey, useEvilProvider } from '../testing/evil-provider.ts';
import { decode } from '../testing/start-auth.ts';

const redirectUri = 'https://platform.test/api/identity/login/callback';
const unavailable = 'identity_unavailable';
const problem = (what: string) => `{"error":"invalid_${what}","error_description":404}`;
const login = { nonce, codeVerifier: 'v'.repeat(43) };
const evil = useEvilProvider();
/** The reason of the last failure, from the log. */
let why = '';

async function outcome(answer: { iss?: string; error?: string; code?: string } = {}) {
  const settings = { issuer: evil.issuer, clientId: client.id, clientSecret: client.secret };
  const configuration = await createProvider(settings).configuration();
  const whole = { state: 'state', code: 'code', ...answer };
  return exchangeCode(configuration, redirectUri, whole, login).then(
    ({ claims }) => claims,
    (failure: IdentityFailure) => {
      why = failure.message;
      return failure.code;
    },
  );
}

test('accepts a correct ID token, and adds the claims of userinfo', async () => {
  evil.userinfo = { sub: 'someone', email: 'a@example.com', nonce: 'other' };
  expect(await outcome()).toMatchObject({ sub: 'someone', email: 'a@example.com', nonce });
});

const unsigned = (claims: Record<string, unknown>) => {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part(claims)}.`;
};

test.each<[string, RegExp, (evil: EvilProvider) => unknown]>([
  ['the nonce of another login', /nonce/, ({ claims }) => (claims['nonce'] = 'another')],
  ['no nonce', /nonce/, ({ claims }) => (claims['nonce'] = undefined)],
  ['another issuer', /"iss"/, ({ claims }) => (claims['iss'] = 'https://other.example')],
  ['another audience', /"aud"/, ({ claims }) => (claims['aud'] = 'other')],
  ['two audiences, no azp', /additional untrusted/, ({ claims }) => (claims['aud'] = [client.id, 'other'])],
  [
    'more audiences and another azp',
    /"azp"/,
    ({ claims }) => Object.assign(claims, { aud: [client.id, 'o'], azp: 'o' }),
  ],
  ['one audience and another azp', /the azp/, ({ claims }) => (claims['azp'] = 'other')],
  ['an end in the past', /"exp"/, ({ claims }) => (claims['exp'] = Math.floor(Date.now() / 1000) - 120)],
  ['no end', /"exp"/, ({ claims }) => (claims['exp'] = undefined)],
  ['no subject', /"sub"/, ({ claims }) => (claims['sub'] = undefined)],
  ['a signature by another key', /signature verification/, (evil) => (evil.key = otherKey)],
  ['a key that is not published', /no applicable keys/, ({ header }) => (header.kid = 'two')],
  ['the algorithm none', /"alg" header/, (evil) => (evil.idToken = unsigned(decode(evil.sign()).claims))],
  [
    'the algorithm none, which its metadata allows',
    /unsupported JWS/,
    (evil) => {
      evil.metadata['id_token_signing_alg_values_supported'] = ['RS256', 'none'];
      evil.idToken = unsigned(decode(evil.sign()).claims);
    },
  ],
  [
    "a MAC under the client's secret, which its metadata allows",
    /unsupported JWS/,
    (evil) => {
      evil.metadata['id_token_signing_alg_values_supported'] = ['RS256', 'HS256'];
      Object.assign(evil, { header: { alg: 'HS256' }, key: client.secret });
    },
  ],
  ['userinfo of someone else', /"sub"/, ({ userinfo }) => (userinfo['sub'] = 'else')],
])('refuses an ID token with %s', async (_, reason, change) => {
  change(evil);
  expect(await outcome()).toBe('identity_token_invalid');
  expect(why).toMatch(reason);
});

test('sends no request after a response of another issuer, or of none where one is required', async () => {
  expect(await outcome({ iss: 'https://other.example' })).toBe('identity_issuer_mismatch');
  evil.metadata['authorization_response_iss_parameter_supported'] = true;
  expect(await outcome()).toBe('identity_issuer_mismatch');
  expect(await outcome({ error: 'access_denied' })).toBe('identity_issuer_mismatch');
  expect(evil.asked).not.toContain('/token');
  expect(await outcome({ iss: evil.issuer })).toMatchObject({ sub: 'someone' });
});

test.each([
  ['access_denied', 'access_denied'],
  ['login_required', 'access_denied'],
  ['consent_required', 'access_denied'],
  ['temporarily_unavailable', 'identity_unavailable'],
  ['"><script>', 'identity_unavailable'],
])('converts the error %s to %s', async (error, code) => {
  expect(await outcome({ error })).toBe(code);
});

const json = { 'Content-Type': 'application/json' };
const basic = { ...json, 'WWW-Authenticate': 'Basic realm="a@b.c"' };
const tokens = '{"access_token":"x","token_type":"Bearer"}';
test.each<[string, string, string, (response: ServerResponse) => unknown]>([
  ['a refused code', 'identity_code_refused', '/token', (r) => r.writeHead(400, json).end(problem('grant'))],
  ['a refused client', unavailable, '/token', (r) => r.writeHead(401, basic).end(problem('client'))],
  ['500', unavailable, '/token', (r) => r.writeHead(500).end('<html>')],
  ['a page', unavailable, '/token', (r) => r.writeHead(200).end('<html>')],
  ['a redirect', unavailable, '/token', (r) => r.writeHead(302, { Location: '/jwks' }).end()],
  ['a broken connection', unavailable, '/token', (r) => r.destroy()],
  ['silence', unavailable, '/token', () => undefined],
  ['half an answer', unavailable, '/token', (r) => r.writeHead(200, json).write('{')],
  ['no keys', unavailable, '/jwks', (r) => r.writeHead(500).end()],
  ['no userinfo', unavailable, '/userinfo', (r) => r.writeHead(503).end()],
  ['no ID token', 'identity_token_invalid', '/token', (r) => r.writeHead(200, json).end(tokens)],
])('reports %s of the provider as %s', async (_, code, path, answer) => {
  evil.answers[path] = answer;
  expect(await outcome()).toBe(code);
  expect(why).not.toMatch(/server responded|invalid_grant$|@/);
});

test('reports a malformed ID token as unavailable', async () => {
  evil.idToken = 'a.b.c';
  expect(await outcome()).toBe(unavailable);
});

const required = { iss: 'i', sub: 's', aud: 'a', iat: 0, exp: 0 };
const [mine, boss, yes, no] = [
  { email: 'a@x.de' },
  { email: 'boss@x.de' },
  { email_verified: true },
  { email_verified: false },
];
test.each([
  ['the ID token has none', {}, { ...mine, ...yes }, { ...mine, ...yes }],
  ['userinfo verifies another', boss, { ...mine, ...yes }, boss],
  ['the ID token verifies, and userinfo has one', yes, boss, boss],
  ['userinfo verifies the same', mine, { ...mine, ...yes }, { ...mine, ...yes }],
  ['the ID token says no', { ...mine, ...no }, { ...mine, ...yes }, { ...mine, ...no }],
])('takes the email and email_verified from the same source: %s', (_, idToken, userInfo, expected) => {
  const { email, email_verified } = mergeClaims({ ...required, ...idToken }, { sub: 's', ...userInfo });
  expect({ email, email_verified }).toEqual({ email_verified: undefined, ...expected });
});
