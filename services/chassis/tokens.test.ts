import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import jwt from 'jsonwebtoken';
import { useStarted } from '../../test/support/use-started.ts';
import { HttpError } from './http-error.ts';
import { createJwksClient, type KeySource, type JwksClient } from './auth-state.ts';
import { createLogger } from './logger.ts';
import { createTestKey, startJwksServer } from './testing/jwks-server.ts';
import { tokenAttacks } from './testing/token-attacks.ts';
import { audience, createTokenVerifier, type TokenVerifier } from './tokens.ts';

const issuer = 'http://platform.test';
const ours = createTestKey('key-1');
const theirs = createTestKey('key-2');
const now = Math.floor(Date.now() / 1000);
const head = { alg: 'RS256', typ: 'at+jwt', kid: ours.kid };
const person = {
  iss: issuer,
  aud: audience,
  sub: '12',
  sid: 's-1',
  jti: 'j-1',
  iat: now,
  exp: now + 900,
  scope: 'jobs:manage',
};
const { sid: _, ...rest } = person;
const machine = { ...rest, sub: 'cms', client_id: 'cms', scope: 'cache:clear' };

let keys: JwksClient;
let tokens: TokenVerifier;
afterAll(() => keys?.close());
const server = useStarted(() => startJwksServer(ours));
beforeAll(() => {
  keys = createJwksClient(server.url, createLogger('gateway', 'silent'));
  tokens = createTokenVerifier(issuer, keys, { isRevoked: () => false });
});
afterEach(() => void jest.restoreAllMocks());

const sign = (claims: object) => jwt.sign(claims, ours.privateKey, { algorithm: 'RS256', header: head });
const withClaims = (claims: object) => sign({ ...person, ...claims });
const withHeader = (header: object) =>
  jwt.sign(person, ours.privateKey, { algorithm: 'RS256', header: { ...head, ...header } });
const good = sign(person);

test("returns the caller of a person's token", async () => {
  const caller = {
    kind: 'user',
    id: 12,
    sessionId: 's-1',
    mustChangePassword: false,
    mustEnrollMfa: false,
    scopes: new Set(['jobs:manage']),
  };
  expect(await tokens.verify(good)).toEqual(caller);
  expect((await tokens.verify(withClaims({ scope: '' }))).scopes).toEqual(new Set());
});

test("returns the caller of a machine client's token", async () => {
  const caller = { kind: 'machine', clientId: 'cms', scopes: new Set(['cache:clear']) };
  expect(await tokens.verify(sign(machine))).toEqual(caller);
});

const refusal = (message: string) => ({
  status: 401,
  error: 'invalid_token',
  message,
  headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
});

test('refuses every published attack, also while a valid token is cached', async () => {
  const { valid, attacks } = tokenAttacks({ ...ours, issuer });
  await tokens.verify(valid);
  const named = ['jku', 'x5u'].map((member) => {
    const header = { ...head, kid: theirs.kid, [member]: `${server.origin}/theirs` };
    return [member, jwt.sign(person, theirs.privateKey, { algorithm: 'RS256', header })] as const;
  });
  const accepted: string[] = [];
  for (const [name, token] of [...attacks, ...named]) {
    const outcome: unknown = await tokens.verify(token).catch((error: unknown) => error);
    const isRefused = outcome instanceof HttpError && outcome.error === 'invalid_token';
    if (!isRefused) accepted.push(`${name}: ${token.slice(0, 2_000)}`);
  }
  expect(accepted).toEqual([]);
  expect(new Set(server.paths)).toEqual(new Set(['/.well-known/jwks.json']));
});

test.each([
  ['a cut-off token', good.slice(0, good.lastIndexOf('.')), 'The access token is malformed.'],
  ['a token of 10 KB', withClaims({ more: 'x'.repeat(10_000) }), 'The access token is malformed.'],
  ['a key that the token brings', withHeader({ jwk: theirs.jwk }), 'The access token is not one of ours.'],
  ['an expired token', withClaims({ exp: now - 1 }), 'The access token has expired.'],
  ['a lifetime of more than 16 minutes', withClaims({ exp: now + 961 }), 'The access token is not valid.'],
  ['another issuer', withClaims({ iss: `${issuer}.evil.test` }), 'The access token is not valid.'],
  ['a token without a session', withClaims({ sid: undefined }), 'The access token is not valid.'],
  ['an empty client_id', withClaims({ sid: undefined, client_id: '' }), 'The access token is not valid.'],
  ['a token without a jti', withClaims({ jti: undefined }), 'The access token is not valid.'],
])('the error names the reason for refusing %s', async (_, token, message) => {
  await expect(tokens.verify(token)).rejects.toMatchObject(refusal(message));
});

test('caches a valid token until its exp', async () => {
  let asked = 0;
  const keys: KeySource = {
    has: (kid) => kid === ours.kid,
    get: (kid) => Promise.resolve(++asked && kid === ours.kid ? ours.publicKey : undefined),
  };
  const counting = createTokenVerifier(issuer, keys, { isRevoked: () => false });
  const token = withClaims({ jti: 'remembered' });
  await counting.verify(token);
  await counting.verify(token);
  expect(asked).toBe(1);
  jest.spyOn(Date, 'now').mockReturnValue((person.exp - 1) * 1000);
  await counting.verify(token);
  expect(asked).toBe(1);
  jest.spyOn(Date, 'now').mockReturnValue(person.exp * 1000);
  await expect(counting.verify(token)).rejects.toMatchObject({ message: 'The access token has expired.' });
});

test('refuses a cached token once its key was withdrawn', async () => {
  let published = true;
  const keys: KeySource = { has: () => published, get: async () => (published ? ours.publicKey : undefined) };
  const verifier = createTokenVerifier(issuer, keys, { isRevoked: () => false });
  await verifier.verify(good);
  published = false;
  await expect(verifier.verify(good)).rejects.toMatchObject(refusal('The access token is not one of ours.'));
});
