import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { constants, createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { scopes } from '@content-platform/contract';
import { HttpError } from './http-error.ts';
import { remoteKeys, type KeySource } from './keys.ts';
import { createLogger } from './logger.ts';
import { createTestKey, startJwksServer, type JwksServer } from './testing/jwks-server.ts';
import { audience, authorize, bearerToken, createTokenVerifier, type TokenVerifier } from './tokens.ts';

type Json = Record<string, unknown>;
type Signer = (input: Buffer) => Buffer;

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
let tokens: TokenVerifier;

beforeAll(async () => {
  server = await startJwksServer(ours);
  const keys = remoteKeys(server.url, createLogger('gateway', 'silent'));
  tokens = createTokenVerifier(issuer, keys, { include: () => false });
});
afterAll(() => server.stop());
afterEach(() => void jest.restoreAllMocks());

function encode(part: unknown): string {
  return Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url');
}

const rsa =
  (key: KeyObject, hash = 'sha256'): Signer =>
  (input) =>
    sign(hash, input, key);
const pss: Signer = (input) =>
  sign('sha256', input, {
    key: ours.privateKey,
    padding: constants.RSA_PKCS1_PSS_PADDING,
    saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
  });
const hmac =
  (key: string | Buffer): Signer =>
  (input) =>
    createHmac('sha256', key).update(input).digest();

function make(header: unknown, claims: unknown, signer: Signer = rsa(ours.privateKey)): string {
  const input = `${encode(header)}.${encode(claims)}`;
  return `${input}.${signer(Buffer.from(input)).toString('base64url')}`;
}
const withClaims = (claims: Json) => make(head, { ...person, ...claims });
const withHeader = (header: Json, signer?: Signer) => make({ ...head, ...header }, person, signer);
const good = make(head, person);

async function refusal(token: string): Promise<HttpError> {
  const outcome: unknown = await tokens.verify(token).catch((error: unknown) => error);
  if (!(outcome instanceof HttpError)) throw new Error('the token was taken');
  return outcome;
}

test("a person's token", async () => {
  const caller = {
    kind: 'user',
    id: 12,
    sessionId: 's-1',
    mustChangePassword: false,
    scopes: new Set(['jobs:manage']),
  };
  expect(await tokens.verify(good)).toEqual(caller);
  expect((await tokens.verify(withClaims({ scope: '' }))).scopes).toEqual(new Set());
});

test("a machine's token", async () => {
  const caller = { kind: 'machine', clientId: 'cms', scopes: new Set(['cache:clear']) };
  expect(await tokens.verify(make(head, machine))).toEqual(caller);
});

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const es256: Signer = (input) => sign('sha256', input, { key: ec, dsaEncoding: 'ieee-p1363' });
const spki = ours.publicKey.export({ type: 'spki', format: 'pem' });
const pkcs1 = ours.publicKey.export({ type: 'pkcs1', format: 'pem' });
const der = ours.publicKey.export({ type: 'spki', format: 'der' });
const nothing: Signer = () => Buffer.alloc(0);

const wrongAlgorithms: [string, string][] = [
  ['none', withHeader({ alg: 'none' }, nothing)],
  ['None with a signature', withHeader({ alg: 'None' })],
  ['none, with the signature of another token', withHeader({ alg: 'none' }, () => Buffer.from('x'))],
  ['no alg', withHeader({ alg: undefined })],
  ['HS256 with the public key as PEM', withHeader({ alg: 'HS256' }, hmac(spki))],
  ['HS256 with the public key as PKCS#1', withHeader({ alg: 'HS256' }, hmac(pkcs1))],
  ['HS256 with the public key as DER', withHeader({ alg: 'HS256' }, hmac(der))],
  ['HS256 with the modulus', withHeader({ alg: 'HS256' }, hmac(String(ours.jwk['n'])))],
  ['HS256 with nothing', withHeader({ alg: 'HS256' }, hmac(''))],
  ['RS384 by our key', withHeader({ alg: 'RS384' }, rsa(ours.privateKey, 'sha384'))],
  ['RS512 by our key', withHeader({ alg: 'RS512' }, rsa(ours.privateKey, 'sha512'))],
  ['PS256 by our key', withHeader({ alg: 'PS256' }, pss)],
  ['PS256 said to be RS256', withHeader({}, pss)],
  ['ES256 under our kid', withHeader({ alg: 'ES256' }, es256)],
  ['ES256 said to be RS256', withHeader({}, es256)],
  ['several', withHeader({ alg: ['RS256', 'none'] })],
  ['rs256', withHeader({ alg: 'rs256' })],
];
const wrongHeaders: [string, string][] = [
  ['typ JWT', withHeader({ typ: 'JWT' })],
  ['no typ', withHeader({ typ: undefined })],
  ['typ of an id token', withHeader({ typ: 'id+jwt' })],
  ['no kid', withHeader({ kid: undefined })],
  ['an empty kid', withHeader({ kid: '' })],
  ['a path as kid', withHeader({ kid: '../../../../../../dev/null' })],
  ['an address as kid', withHeader({ kid: 'file:///dev/null' })],
  ['SQL as kid', withHeader({ kid: "' UNION SELECT 'key-1' --" })],
  ['a NUL in the kid', withHeader({ kid: 'key-1\0' })],
  ['__proto__ as kid', withHeader({ kid: '__proto__' })],
  ['an array as kid', withHeader({ kid: ['key-1'] })],
  ['a kid of 300 characters', withHeader({ kid: 'k'.repeat(300) })],
  ['a key, which the token brings along', withHeader({ jwk: theirs.jwk })],
  ['something that must be understood', withHeader({ crit: ['b64'], b64: false })],
  ['a header that is null', make(null, person)],
  ['a header that is not JSON', make('{"alg":"RS256"', person)],
];
const wrongClaims: [string, string][] = [
  ['another issuer', withClaims({ iss: 'http://evil.test' })],
  ['an issuer that only begins as ours', withClaims({ iss: `${issuer}.evil.test` })],
  ['no issuer', withClaims({ iss: undefined })],
  ['another audience', withClaims({ aud: 'other' })],
  ['no audience', withClaims({ aud: undefined })],
  ['expired', withClaims({ exp: now - 1 })],
  ['expired long ago', withClaims({ iat: 0, exp: 900 })],
  ['no exp', withClaims({ exp: undefined })],
  ['exp as text', withClaims({ exp: String(now + 900) })],
  ['exp null', withClaims({ exp: null })],
  ['not valid yet', withClaims({ nbf: now + 600 })],
  ['nbf as text', withClaims({ nbf: 'never' })],
  ['no sub', withClaims({ sub: undefined })],
  ['sub 0', withClaims({ sub: '0' })],
  ['sub as SQL', withClaims({ sub: '1 OR 1=1' })],
  ['no sid', withClaims({ sid: undefined })],
  ['an empty client_id and no sid', withClaims({ sid: undefined, client_id: '' })],
  ['no jti', withClaims({ jti: undefined })],
  ['no scope', withClaims({ scope: undefined })],
  ['scope as list', withClaims({ scope: ['cache:clear'] })],
  ['claims that are not JSON', make(head, 'hello')],
  ['claims with more behind them', make(head, `${JSON.stringify(person)} {}`)],
  ['claims that are a list', make(head, [person])],
];
const [goodHead, , goodSignature] = good.split('.');
const malformed: [string, string][] = [
  ['nothing', ''],
  ['no dots', 'token'],
  ['no signature', good.slice(0, good.lastIndexOf('.'))],
  ['an empty signature', good.slice(0, good.lastIndexOf('.') + 1)],
  ['a fourth part', `${good}.${goodHead}`],
  ['a line break behind it', `${good}\n`],
  ['a blank behind it', `${good} `],
  ['padding behind it', `${good}==`],
  ['a character that base64url lacks', `${good.slice(0, -4)}+/+/`],
  ['a token of 10 KB', withClaims({ more: 'x'.repeat(10_000) })],
];
const tampered: [string, string][] = [
  ['more signature', `${good}AAAA`],
  ['less signature', good.slice(0, -4)],
  [
    'other bits at the end, which no byte has',
    good.slice(0, -1) + ({ A: 'B', Q: 'R', g: 'h' }[good.at(-1)!] ?? 'x'),
  ],
  ['other claims under the signature', `${goodHead}.${encode({ ...person, sub: '1' })}.${goodSignature}`],
];

async function expectRefusal(token: string, message: string | RegExp): Promise<void> {
  // A good one that is remembered must not let a bad one through.
  await tokens.verify(good);
  const error = await refusal(token);
  expect(error).toMatchObject({ status: 401, error: 'invalid_token' });
  expect(error.message).toMatch(message);
  expect(error.headers).toEqual({ 'WWW-Authenticate': 'Bearer error="invalid_token"' });
}

test.each(malformed)('%s: 401, malformed', (_, token) => expectRefusal(token, 'is malformed'));
test.each(wrongHeaders)('%s: 401, not ours', (_, token) => expectRefusal(token, 'is not one of ours'));
test.each([...wrongAlgorithms, ...wrongClaims, ...tampered])('%s: 401', (_, token) =>
  expectRefusal(token, /^The access token /),
);

test('a key that the token brings or names is not looked at', async () => {
  const signer = rsa(theirs.privateKey);
  const der64 = theirs.publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
  const address = `${server.origin}/theirs`;
  const brought: Json[] = [{ jwk: theirs.jwk }, { jku: address }, { x5u: address }, { x5c: [der64] }];
  for (const header of brought) {
    for (const kid of [ours.kid, theirs.kid, address]) {
      expect(await refusal(withHeader({ ...header, kid }, signer))).toMatchObject({ status: 401 });
    }
  }
  expect(server.paths).not.toContain('/theirs');
});

test('a token that was checked once is taken from memory, and never past its exp', async () => {
  let asked = 0;
  const keys: KeySource = {
    get: (kid) => Promise.resolve(++asked && kid === ours.kid ? ours.publicKey : undefined),
  };
  const counting = createTokenVerifier(issuer, keys, { include: () => false });
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
])('the header %j is answered %s', (header, error) => {
  expect(() => bearerToken(header)).toThrow(expect.objectContaining({ status: 401, error }));
});

test('each access is given to those who may, and to nobody else', async () => {
  const [user, client] = [await tokens.verify(good), await tokens.verify(make(head, machine))];
  for (const caller of [user, client]) expect(() => authorize(caller, { access: 'token' })).not.toThrow();
  expect(() => authorize(user, { access: 'user' })).not.toThrow();
  const forbidden = expect.objectContaining({ status: 403, error: 'insufficient_scope' });
  expect(() => authorize(client, { access: 'user' })).toThrow(forbidden);
  for (const scope of scopes) {
    for (const caller of [user, client]) {
      if (caller.scopes.has(scope)) expect(() => authorize(caller, { access: scope })).not.toThrow();
      else expect(() => authorize(caller, { access: scope })).toThrow(forbidden);
    }
  }
});

test('who has to choose a password first can call what leads there, and nothing else', async () => {
  const restricted = await tokens.verify(withClaims({ must_change_password: true, scope: scopes.join(' ') }));
  expect(restricted).toMatchObject({ mustChangePassword: true });
  expect(() => authorize(restricted, { access: 'user', beforePasswordChange: true })).not.toThrow();
  const forbidden = expect.objectContaining({ status: 403, error: 'password_change_required' });
  for (const access of ['token', 'user', ...scopes] as const) {
    expect(() => authorize(restricted, { access })).toThrow(forbidden);
  }
  await expect(tokens.verify(withClaims({ must_change_password: 'true' }))).rejects.toMatchObject({
    status: 401,
  });
});
