import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import jwt from 'jsonwebtoken';
import { scopes } from '@content-platform/contract';
import { HttpError } from './http-error.ts';
import { createJwksClient, type KeySource, type JwksClient } from './jwks.ts';
import { createLogger } from './logger.ts';
import { createTestKey, startJwksServer, type JwksServer } from './testing/jwks-server.ts';
import { tokenAttacks } from './testing/token-attacks.ts';
import { audience, authorize, bearerToken, createTokenVerifier, type TokenVerifier } from './tokens.ts';

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

let server: JwksServer;
let keys: JwksClient;
let tokens: TokenVerifier;

beforeAll(async () => {
  server = await startJwksServer(ours);
  keys = createJwksClient(server.url, createLogger('gateway', 'silent'));
  tokens = createTokenVerifier(issuer, keys, { isRevoked: () => false });
});
afterAll(async () => {
  await keys.close();
  server.stop();
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
  const keys: KeySource = {
    has: () => published,
    get: async () => (published ? ours.publicKey : undefined),
  };
  const verifier = createTokenVerifier(issuer, keys, { isRevoked: () => false });
  await verifier.verify(good);
  published = false;
  await expect(verifier.verify(good)).rejects.toMatchObject(refusal('The access token is not one of ours.'));
});

test.each([
  ['Bearer abc', 'abc'],
  ['bearer abc', 'abc'],
  ['BEARER a.b-c_d', 'a.b-c_d'],
])('the header %j carries the token %j', (header, token) => {
  expect(bearerToken(header)).toBe(token);
});

test.each([
  [undefined, 'token_required'],
  ['', 'token_required'],
  ['abc', 'token_required'],
  ['Basic abc', 'token_required'],
  ['Bearerabc', 'token_required'],
  ['Bearer', 'invalid_token'],
  ['Bearer ', 'invalid_token'],
  ['Bearer  abc', 'invalid_token'],
  ['Bearer abc def', 'invalid_token'],
])('the header %j is refused: %s', (header, error) => {
  expect(() => bearerToken(header)).toThrow(expect.objectContaining({ status: 401, error }));
});

test('allows each access to exactly the callers that have it', async () => {
  const [user, client] = [await tokens.verify(good), await tokens.verify(sign(machine))];
  const reader = await tokens.verify(sign({ ...machine, scope: 'content:read' }));
  for (const caller of [user, reader]) expect(() => authorize(caller, { access: 'reader' })).not.toThrow();
  expect(() => authorize(user, { access: 'user' })).not.toThrow();
  const forbidden = expect.objectContaining({ status: 403, error: 'insufficient_scope' });
  expect(() => authorize(client, { access: 'user' })).toThrow(forbidden);
  expect(() => authorize(client, { access: 'reader' })).toThrow(forbidden);
  for (const scope of scopes) {
    for (const caller of [user, client]) {
      if (caller.scopes.has(scope)) expect(() => authorize(caller, { access: scope })).not.toThrow();
      else expect(() => authorize(caller, { access: scope })).toThrow(forbidden);
    }
  }
});

test('allows a list of scopes to callers that have one of them', async () => {
  const access = ['cache:clear', 'jobs:manage'] as const;
  for (const scope of access) {
    const caller = await tokens.verify(sign({ ...machine, scope }));
    expect(() => authorize(caller, { access })).not.toThrow();
  }
  const reader = await tokens.verify(sign({ ...machine, scope: 'content:read' }));
  expect(() => authorize(reader, { access })).toThrow(
    expect.objectContaining({
      error: 'insufficient_scope',
      message: 'The access token lacks the scope cache:clear or jobs:manage.',
    }),
  );
});

test.each([
  ['must_change_password', 'beforePasswordChange', 'password_change_required'],
  ['mfa_enrollment_required', 'beforeMfaEnrollment', 'mfa_enrollment_required'],
])('allows a person with the claim %s only the endpoints that end it', async (claim, before, error) => {
  const restricted = await tokens.verify(withClaims({ [claim]: true, scope: scopes.join(' ') }));
  expect(() => authorize(restricted, { access: 'user', [before]: true })).not.toThrow();
  const forbidden = expect.objectContaining({ status: 403, error });
  for (const access of ['reader', 'user', ...scopes] as const) {
    expect(() => authorize(restricted, { access })).toThrow(forbidden);
  }
  await expect(tokens.verify(withClaims({ [claim]: 'true' }))).rejects.toMatchObject({ status: 401 });
});
