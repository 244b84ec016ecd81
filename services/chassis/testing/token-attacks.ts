import { constants, createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { TestKey } from './jwks-server.ts';
import lists from './token-attacks.json' with { type: 'json' };

type Json = Record<string, unknown>;
type Named = [name: string, token: string];

const encode = (part: unknown) =>
  Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url');
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/**
 * Returns a valid token and every published attack on verifiers of tokens: made without the key and, to test the other
 * checks, with the key. A verifier must refuse them all.
 */
export function tokenAttacks({ kid, publicKey, privateKey, issuer }: TestKey & { issuer: string }) {
  const now = Math.floor(Date.now() / 1000);
  const head = { alg: 'RS256', typ: 'at+jwt', kid };
  const person = {
    iss: issuer,
    aud: 'content-platform',
    sub: '7',
    sid: 's',
    jti: 'j',
    iat: now,
    exp: now + 900,
    scope: '',
  };
  const admin = { ...person, scope: 'users:admin' };
  const rsa =
    (key: KeyObject, hash = 'sha256') =>
    (input: string) =>
      sign(hash, Buffer.from(input), key);
  const ours = rsa(privateKey);
  function make(header: unknown, claims: unknown, signer: (input: string) => Buffer = ours): string {
    const input = `${encode(header)}.${encode(claims)}`;
    return `${input}.${signer(input).toString('base64url')}`;
  }
  const valid = make(head, person);
  const other = make(head, { ...person, sub: '8', jti: 'other' });
  const [h, p, s] = valid.split('.') as [string, string, string];
  const otherSignature = other.split('.')[2]!;
  const attacks: Named[] = [];
  const add = (name: string, ...tokens: string[]) =>
    attacks.push(...tokens.map((token): Named => [name, token]));

  /** Returns a list of token-attacks.json with its placeholders ($kid, $issuer, $signature, ...) replaced. */
  const listFor = (name: 'kids' | 'headers' | 'shapes') =>
    JSON.parse(
      JSON.stringify(lists[name])
        .replaceAll('$kid', kid)
        .replaceAll('$KID', kid.toUpperCase())
        .replaceAll('$issuer', issuer)
        .replaceAll('$valid', valid)
        .replaceAll('$header', h)
        .replaceAll('$payload', p)
        .replaceAll('$signature', s),
    ) as unknown[];
  const nothing = () => Buffer.alloc(0);
  const someBytes = () => Buffer.alloc(256, 7);
  const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const theirs = rsa(stranger.privateKey);
  const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' });

  // No algorithm, in upper and lower case, with and without a signature.
  for (let bits = 0; bits < 16; bits += 1) {
    const none = [...'none'].map((letter, at) => ((bits >> at) & 1 ? letter.toUpperCase() : letter)).join('');
    add(
      `alg ${none}`,
      make({ ...head, alg: none }, admin, nothing),
      make({ ...head, alg: none }, admin, someBytes),
    );
    add(`alg ${none}, no third part`, make({ ...head, alg: none }, admin, nothing).slice(0, -1));
    add(`alg ${none}, a good signature`, make({ ...head, alg: none }, person));
  }
  for (const alg of [...lists.algorithms, undefined])
    add(`alg ${JSON.stringify(alg)}`, make({ ...head, alg }, admin, nothing), make({ ...head, alg }, person));

  // The public key as a shared secret, in each of its forms.
  const jwk = publicKey.export({ format: 'jwk' });
  const exportAs = (type: 'spki' | 'pkcs1') => ({
    pem: publicKey.export({ type, format: 'pem' }) as string,
    der: publicKey.export({ type, format: 'der' }),
  });
  const forms = [exportAs('spki'), exportAs('pkcs1')];
  const secrets = [
    ...forms.flatMap(({ pem }) => [
      pem,
      pem.trim(),
      `${pem}\0`,
      ...['\r\n', ''].map((end) => pem.replaceAll('\n', end)),
      ...['', '\n'].map((separator) => pem.split('\n').slice(1, -2).join(separator)),
    ]),
    ...forms.flatMap(({ der }) => [
      der,
      ...(['base64', 'base64url', 'hex'] as const).map((encoding) => der.toString(encoding)),
    ]),
    Buffer.from(jwk.n!, 'base64url'),
    JSON.stringify(jwk),
    JSON.stringify({ keys: [jwk] }),
    jwk.n!,
    jwk.e!,
    kid,
    ...lists.secrets,
  ];
  for (const bits of ['256', '384', '512'])
    for (const secret of secrets) {
      const signer = (input: string) => createHmac(`sha${bits}`, secret).update(input).digest();
      add(`HS${bits} by the public key`, make({ ...head, alg: `HS${bits}` }, admin, signer));
      add(`HS${bits} said to be RS256`, make(head, admin, signer));
    }

  // Other algorithms, with the platform's key and with other keys under its kid; signatures of zeros, in DER, empty.
  const pss = (input: string) =>
    sign('sha256', Buffer.from(input), { key: privateKey, padding: constants.RSA_PKCS1_PSS_PADDING });
  const p1363 = (input: string) =>
    sign('sha256', Buffer.from(input), { key: curve.privateKey, dsaEncoding: 'ieee-p1363' });
  const der = rsa(curve.privateKey);
  const derOfZeros = () => Buffer.from('3006020100020100', 'hex');
  const zeros = [64, 96, 132, 256].map((length) => () => Buffer.alloc(length));
  const others = [theirs, p1363, der, derOfZeros, nothing, someBytes, () => Buffer.alloc(256, 255), ...zeros];
  const known = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 ES256K EdDSA Ed25519';
  for (const alg of known.split(' ')) {
    for (const signer of others) add(`${alg}, another signature`, make({ ...head, alg }, admin, signer));
    if (alg !== 'RS256')
      add(`${alg} by our key`, make({ ...head, alg }, person), make({ ...head, alg }, person, pss));
  }
  for (const hash of ['sha1', 'sha224', 'sha384', 'sha512'])
    add(`RS256 over ${hash}`, make(head, person, rsa(privateKey, hash)));
  add('PSS said to be RS256', make(head, person, pss));
  const modulus = BigInt(`0x${Buffer.from(jwk.n!, 'base64url').toString('hex')}`);
  const number = BigInt(`0x${Buffer.from(s, 'base64url').toString('hex')}`);
  const bytesOf = (value: bigint, length: number) =>
    Buffer.from(value.toString(16).padStart(length * 2, '0'), 'hex').toString('base64url');
  for (const value of [number + modulus, modulus - number, modulus, 0n, 1n])
    add(
      'a signature and the modulus',
      `${h}.${p}.${bytesOf(value, 257)}`,
      `${h}.${p}.${bytesOf(value % 2n ** 2048n, 256)}`,
    );

  // Key ids that name no key.
  const kids = [undefined, 'k'.repeat(5_000), ...listFor('kids')];
  const emptySecret = (input: string) => createHmac('sha256', '').update(input).digest();
  for (const name of kids)
    for (const signer of [ours, theirs, nothing, emptySecret])
      add(`kid ${JSON.stringify(name)?.slice(0, 60)}`, make({ ...head, kid: name }, admin, signer));

  // Keys in the token, and header fields that change its meaning, with each signature.
  const strangersJwk = stranger.publicKey.export({ format: 'jwk' });
  const certificate = stranger.publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
  const members = [
    { jwk: strangersJwk, kid: undefined },
    { jwk: { ...strangersJwk, kid } },
    { x5c: [certificate] },
    ...listFor('headers'),
  ] as Json[];
  for (const member of members)
    for (const signer of [ours, theirs, nothing])
      add(`a header with ${Object.keys(member).join()}`, make({ ...head, ...member }, admin, signer));
  const raw = `${encode({ ...head, b64: false, crit: ['b64'] })}.${JSON.stringify(admin)}`;
  add(
    'an unencoded payload',
    `${raw}.${ours(raw).toString('base64url')}`,
    `${raw.split('.')[0]}..${ours(raw).toString('base64url')}`,
  );

  // Wrong token types, and claims of wrong types.
  for (const typ of [...lists.types, undefined])
    add(`typ ${JSON.stringify(typ)}`, make({ ...head, typ }, person));
  const wrong = [...lists.times, [now + 900], String(now + 900)];
  for (const value of [...wrong, undefined]) {
    add(`exp ${JSON.stringify(value)}`, make(head, { ...person, exp: value }));
    add(`iat ${JSON.stringify(value)}`, make(head, { ...person, iat: value }));
    if (value !== undefined) add(`nbf ${JSON.stringify(value)}`, make(head, { ...person, nbf: value }));
  }
  for (const exp of [0, 1, -1, -now, now - 1, now - 3_600, now + 900.5, -(2 ** 53)])
    add(`exp ${exp}`, make(head, { ...person, exp }));
  for (const text of [...'1e400 -1e400 NaN Infinity 1e20 0x7fffffff 1_000 +1 01'.split(' '), '9'.repeat(400)])
    for (const name of ['exp', 'iat', 'nbf']) {
      const claims = JSON.stringify({ ...person, [name]: 'HERE' }).replace('"HERE"', text);
      // -1e400 is a time in the past.
      if (!(name === 'nbf' && text === '-1e400')) add(`${name} ${text.slice(0, 20)}`, make(head, claims));
    }
  add('nbf later', make(head, { ...person, nbf: now + 3_000 }), make(head, { ...person, nbf: 2 ** 52 }));
  const issuers = [`${issuer}/`, `${issuer}.x`, issuer.toUpperCase(), ` ${issuer}`, [issuer], { 0: issuer }];
  for (const iss of [...issuers, null, '', 'x', 0, true, undefined])
    add(`iss ${JSON.stringify(iss)}`, make(head, { ...person, iss }));
  for (const aud of [...lists.audiences, undefined])
    add(`aud ${JSON.stringify(aud)}`, make(head, { ...person, aud }));
  for (const sub of [...lists.subjects, undefined, '7'.repeat(30)])
    add(`sub ${JSON.stringify(sub)}`, make(head, { ...person, sub }));
  for (const scope of [null, undefined, ['users:admin'], {}, 1, true])
    add(`scope ${JSON.stringify(scope)}`, make(head, { ...person, scope }));
  const empty = ['', 'null', '[]', '1', '"x"', '{', '{}'];
  for (const claims of [
    ...empty,
    '{} {}',
    `[${JSON.stringify(person)}]`,
    `${JSON.stringify(person)}x`,
    `\uFEFF${JSON.stringify(person)}`,
    '{"__proto__":{"sub":"1"}}',
    JSON.stringify({ __proto__x: 1, constructor: { prototype: admin } }),
  ])
    add(`claims ${claims.slice(0, 20)}`, make(head, claims));
  for (const header of [
    ...empty,
    `[${JSON.stringify(head)}]`,
    `${JSON.stringify(head)}x`,
    `\uFEFF${JSON.stringify(head)}`,
  ])
    add(`header ${header.slice(0, 20)}`, make(header, person));
  add(
    'members twice, under another signature',
    make(`{"alg":"none",${JSON.stringify(head).slice(1)}`, admin, theirs),
    make(`${JSON.stringify(head).slice(0, -1)},"alg":"none"}`, admin, nothing),
    make(`${JSON.stringify(head).slice(0, -1)},"alg":"HS256"}`, admin),
    make(`${JSON.stringify(head).slice(0, -1)},"\\u0061lg":"none"}`, admin, nothing),
  );

  // Parts of other tokens, and other encodings of the same token.
  add(
    'the signature of another',
    `${h}.${p}.${otherSignature}`,
    `${h}.${encode(admin)}.${s}`,
    `${encode({ ...head, x: 1 })}.${p}.${s}`,
    `${p}.${h}.${s}`,
    `${h}.${p}.${p}`,
  );
  const last = alphabet.indexOf(s.at(-1)!);
  for (let more = 1; more < 16; more += 1)
    add('other bits at the end', valid.slice(0, -1) + alphabet[last + more]!);
  add('padding', `${valid}=`, `${valid}==`, `${h}=.${p}.${s}`, `${h}==.${p}=.${s}==`, `${valid}%3d`);
  const standard = (part: string) => part.replaceAll('-', '+').replaceAll('_', '/');
  if (standard(valid) !== valid) add('the standard alphabet', standard(valid), `${h}.${p}.${standard(s)}`);
  for (const blank of [' ', '\t', '\n', '\r\n', '\0', '\v', '\f', '\u00a0', '\u200b', '\ufeff'])
    add(
      'a blank',
      `${valid}${blank}`,
      `${blank}${valid}`,
      `${h}${blank}.${p}.${s}`,
      `${h}.${p}.${s.slice(0, 9)}${blank}${s.slice(9)}`,
    );
  for (let cut = 1; cut < 12; cut += 1)
    add(
      'cut',
      valid.slice(0, -cut),
      valid.slice(cut),
      `${valid}${'A'.repeat(cut)}`,
      `${h}.${p}.${'A'.repeat(cut)}${s}`,
    );
  add('dots and quotes', ...(listFor('shapes') as string[]));
  const json = { payload: p, protected: h, signature: s };
  add(
    'JSON serialisation',
    JSON.stringify(json),
    JSON.stringify({ payload: p, signatures: [json] }),
    encode(json),
    `{"protected":"${h}"}.${p}.${s}`,
  );
  add(
    'the shape of a JWE',
    `${encode({ alg: 'dir', enc: 'A256GCM', kid })}..${p}.${p}.${s}`,
    `${encode({ alg: 'RSA-OAEP', enc: 'A256GCM', zip: 'DEF', kid })}.${s}.${p}.${p}.${s}`,
    `${encode({ alg: 'PBES2-HS512+A256KW', enc: 'A256GCM', p2c: 2_000_000_000, p2s: 'x' })}.a.b.c.d`,
  );
  add('nested', make({ ...head, cty: 'JWT' }, valid), make(head, `"${valid}"`), make(head, { jwt: valid }));
  const bomb = gzipSync(Buffer.alloc(1_000_000, 'x'));
  add(
    'a zip bomb',
    `${encode({ ...head, zip: 'DEF' })}.${bomb.toString('base64url')}.${s}`,
    `${bomb.toString('base64url')}.${p}.${s}`,
  );
  add(
    'deep',
    make(`${'['.repeat(3_000)}${']'.repeat(3_000)}`, person),
    make(head, `${'{"a":'.repeat(800)}1${'}'.repeat(800)}`),
  );
  add(
    'huge',
    make(head, { ...person, x: 'x'.repeat(6_500) }),
    make(head, { ...person, x: 'x'.repeat(100_000) }),
    'x'.repeat(1_000_000),
    '.'.repeat(8_000),
    `${'a'.repeat(4_000)}.`.repeat(2),
  );
  return { valid, other, attacks: attacks.filter(([, token]) => token !== valid) };
}

/** Makes `count` tokens of `valid` by bit flips, cuts, swaps and parts of `other`, never `valid` itself. */
export function fuzzedTokens(valid: string, other: string, count: number, seed: number): string[] {
  const number = fc.noBias(fc.nat(1 << 24));
  const changes: ((token: string, a: number, b: number) => string)[] = [
    (token, a, b) =>
      token.slice(0, a) + String.fromCharCode(token.charCodeAt(a) ^ (1 << (b % 8))) + token.slice(a + 1),
    (token, a, b) => token.slice(0, a) + alphabet[b % 64]! + token.slice(a + 1),
    (token, a, b) => token.slice(0, a) + token.slice(a + 1 + (b % 40)),
    (token, a, b) => token.slice(0, a) + alphabet[b % 64]! + token.slice(a),
    (token, a, b) =>
      [...token]
        .with(a, token[b % token.length]!)
        .with(b % token.length, token[a]!)
        .join(''),
    (token, a, b) => token.slice(0, a) + token.slice(b % token.length),
    (token, a, b) => token.slice(0, a) + other.slice(a, a + 1 + (b % 200)) + token.slice(a + 1 + (b % 200)),
    (token, a, b) =>
      token
        .split('.')
        .map((part, at) => (at === a % 3 ? other.split('.')[b % 3]! : part))
        .join('.'),
  ];
  const step = fc.tuple(fc.noBias(fc.nat(changes.length - 1)), number, number);
  const recipes = fc.array(step, { minLength: 1, maxLength: 3 });
  const found: string[] = [];
  for (let round = 0; found.length < count; round += 1)
    for (const steps of fc.sample(recipes, { numRuns: count, seed: seed + round })) {
      const token = steps.reduce(
        (from, [change, a, b]) => (from === '' ? from : changes[change]!(from, a % from.length, b)),
        valid,
      );
      if (token !== valid && token !== other && found.length < count) found.push(token);
    }
  return found;
}
