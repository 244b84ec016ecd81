import { beforeAll, expect, test } from '@jest/globals';
import bcrypt from '@node-rs/bcrypt';
import { decode, issuer, password, useAuth, visible } from '../testing/start-auth.ts';

const auth = useAuth();
beforeAll(async () => {
  await auth.addUser('ann@example.com', password, 'sre');
  await auth.addUser('gone@example.com', password);
  await auth.sql(`UPDATE auth.user SET disabled = true WHERE email LIKE 'gone%'`);
});

/** Adds a user whose hash is bcrypt, as imported ones are. */
async function addImported(email: string, text = password) {
  const passwordHash = await bcrypt.hash(text, { cost: 10, version: '2y' });
  return (await auth.stores.users.create({ email, name: 'B', passwordHash, roles: ['user'] }))!;
}
const hashOf = async (id: number) => (await auth.stores.users.findById(id))!.passwordHash;

test('returns the user and a token with exactly these claims', async () => {
  const { token, token_type, expires_in, user } = (await auth.logIn('ann@example.com')).body!;
  expect({ token_type, expires_in }).toEqual({ token_type: 'Bearer', expires_in: 900 });
  expect(user).toMatchObject({ email: 'ann@example.com', name: 'A Person' });
  const { header, claims } = decode(token);
  expect(header).toEqual({ alg: 'RS256', typ: 'at+jwt', kid: auth.keys.current.kid });
  const uuid = expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown;
  const { iat } = claims as { iat: number };
  expect(Math.abs(iat - Date.now() / 1000)).toBeLessThan(60);
  expect(claims).toEqual({
    iss: issuer,
    aud: 'content-platform',
    sub: String(user.id),
    jti: uuid,
    sid: expect.stringMatching(/^[1-9]\d*$/) as unknown,
    iat,
    exp: iat + 900,
    scope: 'jobs:manage pulse:view',
  });
});

test('returns the same reply after the same time for each kind of failure', async () => {
  await addImported('y@x.de');
  const equalized = auth.equalized();
  const refusals = await Promise.all([
    auth.logIn('ann@example.com', 'wrong'),
    auth.logIn('unknown@example.com'),
    auth.logIn('y@x.de', 'wrong'),
    auth.logIn('gone@example.com'),
    auth.logIn('gone@example.com', 'wrong'),
  ]);
  expect(refusals[0]).toMatchObject({ status: 401, error: { error: 'invalid_credentials' } });
  for (const refusal of refusals) expect(visible(refusal)).toEqual(visible(refusals[0]));
  expect(auth.equalized()).toBe(equalized + refusals.length);
});

test('replaces a bcrypt hash by argon2id at a successful login only', async () => {
  const { id, email, passwordHash } = await addImported('c@x.de');
  expect((await auth.logIn(email, 'wrong')).status).toBe(401);
  expect(await hashOf(id)).toBe(passwordHash);
  expect((await auth.logIn(email)).status).toBe(200);
  const renewed = await hashOf(id);
  expect(renewed).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  expect((await auth.logIn(email)).status).toBe(200);
  expect(await hashOf(id)).toBe(renewed);
  const long = await addImported('long@x.de', `${'x'.repeat(72)}right`);
  expect((await auth.logIn(long.email, `${'x'.repeat(72)}wrong`)).status).toBe(200);
  expect(await hashOf(long.id)).toBe(long.passwordHash);
});

test('succeeds while a concurrent login renews the hash', async () => {
  const { id, email } = await addImported('d@x.de');
  const renewed = await auth.accounts.passwords.hash(password);
  const login = await auth.whileHeld(
    (query) => query('renew', 'UPDATE auth.user SET password_hash = $2 WHERE id = $1', [id, renewed]),
    () => auth.logIn(email),
  );
  expect(login.status).toBe(200);
});

test('opens no session for a user who is disabled during the check', async () => {
  const { id, email } = await auth.person();
  const login = await auth.whileHeld(
    (query) => query('disable', 'UPDATE auth.user SET disabled = true WHERE id = $1', [id]),
    () => auth.logIn(email),
  );
  expect(login.error?.error).toBe('invalid_credentials');
});

test('replaces a password hash only if it is still the one that the login checked', async () => {
  const { id, passwordHash } = (await auth.stores.users.findByEmail('ann@example.com'))!;
  await auth.stores.users.replacePasswordHash(id, 'another', 'new');
  expect(await hashOf(id)).toBe(passwordHash);
});
