import { beforeEach, describe, expect, test } from '@jest/globals';
import { Secret } from 'otpauth';
import * as contract from '@content-platform/contract';
import { codeOf, enrol, mfaTokenOf } from '../../../test/support/totp.ts';
import { resetMfa } from '../commands/users.ts';
import { useScriptedProvider } from '../testing/identity-fixture.ts';
import { longBackoff, startAuth, type TestAuth, useAuth } from '../testing/start-auth.ts';
import { createMemoryFailures } from '../throttle/failures.ts';
import { createLoginThrottle } from '../throttle/login-throttle.ts';
import { throttleProof } from './second-factor.ts';

const auth = useAuth({ backoff: longBackoff });
let user: Awaited<ReturnType<TestAuth['person']>> & Awaited<ReturnType<typeof enrol>>;
beforeEach(async () => {
  const person = await auth.person();
  user = { ...person, ...(await enrol(auth.origin, person.token)) };
});

const complete = (mfa_token: string, proof: { code?: string; recovery_code?: string }) =>
  auth.ask(contract.loginMfa, { body: { mfa_token, ...proof } });
const begin = async (headers = {}) => mfaTokenOf(await auth.logIn(user.email, undefined, headers));
const refused = { status: 401, error: { error: 'invalid_credentials' } };

test('a login needs the code, and each code is accepted once', async () => {
  const [first, second] = [await begin(), await begin()];
  const code = codeOf(user.secret);
  const { body } = await complete(first, { code });
  expect(body).toMatchObject({ user: { id: user.id }, expires_in: 900 });
  expect(await complete(second, { code })).toMatchObject(refused);
  expect(await complete(first, { code: codeOf(user.secret, 30) })).toMatchObject(refused);
  expect((await auth.ask(contract.me, { token: body!.token })).body).toMatchObject({ mfa_enabled: true });
});

test('accepts one of two concurrent logins with the same code', async () => {
  const tokens = [await begin(), await begin()];
  const code = codeOf(user.secret);
  const replies = await Promise.all(tokens.map((token) => complete(token, { code })));
  expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 401]);
});

test('a login that waits while an administrator removes the second factor is refused', async () => {
  const token = await begin();
  const reply = await auth.whileHeld(
    async (query) => {
      await query('test', 'SELECT FROM auth.user WHERE id = $1 FOR UPDATE', [user.id]);
      await query('test', 'DELETE FROM auth.totp WHERE user_id = $1', [user.id]);
    },
    () => complete(token, { code: codeOf(user.secret) }),
  );
  expect(reply).toMatchObject(refused);
});

test.each([
  ['from a minute ago', -60],
  ['from 90 seconds in the future', 90],
])('refuses a code %s, and keeps the login open', async (_, seconds) => {
  const token = await begin();
  expect(await complete(token, { code: codeOf(user.secret, seconds) })).toMatchObject(refused);
  expect((await complete(token, { code: codeOf(user.secret) })).status).toBe(200);
});

test("refuses another user's code, and another user's mfa_token", async () => {
  const person = await auth.person();
  const other = { ...person, ...(await enrol(auth.origin, person.token)) };
  const token = await begin();
  expect(await complete(token, { code: codeOf(other.secret) })).toMatchObject(refused);
  const theirs = mfaTokenOf(await auth.logIn(other.email));
  expect(await complete(theirs, { code: codeOf(user.secret) })).toMatchObject(refused);
});

test.each(['x', 'x'.repeat(43), ''.padEnd(200, 'é')])('refuses the mfa_token %.10j', async (token) => {
  expect(await complete(token, { code: codeOf(user.secret) })).toMatchObject(refused);
});

test('refuses a login that took more than five minutes, or whose password was changed meanwhile', async () => {
  const late = await begin();
  const age = 'UPDATE auth.mfa_login SET created_at = now() - make_interval(secs => $2) WHERE user_id = $1';
  await auth.sql(age, user.id, 301);
  expect(await complete(late, { code: codeOf(user.secret) })).toMatchObject(refused);
  await auth.sql(age, user.id, 270);
  expect((await complete(late, { code: codeOf(user.secret) })).status).toBe(200);
  const changed = await begin();
  await auth.sql(`UPDATE auth.user SET password_hash = password_hash || ' ' WHERE id = $1`, user.id);
  expect(await complete(changed, { code: codeOf(user.secret, 30) })).toMatchObject(refused);
});

test('a recovery code replaces the code, once, in any spelling', async () => {
  const [recovery_code] = user.recoveryCodes as [string];
  const typed = recovery_code.toUpperCase().replaceAll('-', ' ');
  expect((await complete(await begin(), { recovery_code: typed })).status).toBe(200);
  expect(await complete(await begin(), { recovery_code })).toMatchObject(refused);
});

test('a login whose password was changed meanwhile does not use up a recovery code', async () => {
  const [recovery_code] = user.recoveryCodes as [string];
  const setHash = (hash: string) =>
    auth.sql(`UPDATE auth.user SET password_hash = ${hash} WHERE id = $1`, user.id);
  const changed = await begin();
  await setHash(`password_hash || ' '`);
  expect(await complete(changed, { recovery_code })).toMatchObject(refused);
  await setHash('rtrim(password_hash)');
  expect((await complete(await begin(), { recovery_code })).status).toBe(200);
});

test('guesses of codes are limited, and a known password does not reset their count', async () => {
  const wrong = String((Number(codeOf(user.secret)) + 1) % 1_000_000).padStart(6, '0');
  for (let guess = 0; guess < 10; guess += 1)
    expect(await complete(await begin(), { code: wrong })).toMatchObject(refused);
  expect((await complete(await begin(), { code: wrong })).error?.error).toBe('rate_limited');
  const removal = await auth.ask(contract.deleteTotp, { body: { code: wrong }, token: user.token });
  expect(removal.error?.error).toBe('rate_limited');
  const { error } = await auth.ask(contract.reauthenticate, { body: { code: wrong }, token: user.token });
  expect(error?.error).toBe('rate_limited');
  const { values } = await auth.metrics.registry.getSingleMetric('logins_total')!.get();
  expect(values.find(({ labels }) => labels['outcome'] === 'limited')!.value).toBe(1);
  expect((await auth.audited(user.id, 'mfa_failed')).length).toBeGreaterThanOrEqual(10);
});

test('guesses of codes from everywhere count for a day', async () => {
  let now = 0;
  const deps = { database: auth.stores, throttle: createLoginThrottle(createMemoryFailures(() => now)) };
  const guess = (from: string) => throttleProof(deps, user.id, from, async () => ({ ok: false }));
  for (let n = 0; n < 110; n += 1, now += 800_000) await guess(`198.51.100.${n}`);
  await expect(guess('192.0.2.1')).rejects.toThrow('Too many');
});

test('the audit log has a login that stops before the second factor', async () => {
  await begin();
  const [entry] = await auth.stores.audit.list({ userId: user.id }, undefined, 1);
  expect(entry).toMatchObject({
    event: 'mfa_required',
    address: '127.0.0.1',
    details: { first: 'password' },
  });
});

test('mfa_required is no failed login', async () => {
  for (let times = 0; times < 15; times += 1) await begin({ 'X-Forwarded-For': '192.0.2.1' });
  expect((await complete(await begin(), { code: codeOf(user.secret) })).status).toBe(200);
});

test('a temporary password opens one session, after the code', async () => {
  const admin = await auth.person({}, 'admin');
  const options = { params: { id: user.id }, token: admin.token };
  const { body } = await auth.ask(contract.createTemporaryPassword, options);
  const temporary = body!.temporary_password;
  const logIn = async () => mfaTokenOf(await auth.logIn(user.email, temporary));
  const [one, two] = [await logIn(), await logIn()];
  const { body: login } = await complete(one, { code: codeOf(user.secret) });
  expect(login).toMatchObject({ must_change_password: true });
  expect(await complete(two, { code: codeOf(user.secret, 30) })).toMatchObject(refused);
  expect(await auth.logIn(user.email, temporary)).toMatchObject(refused);
});

test('stores the secret encrypted, and recovery codes as hashes', async () => {
  const rows = await auth.sql<{ row: string }>(
    'SELECT totp::text AS row FROM auth.totp UNION ALL SELECT recovery_code::text FROM auth.recovery_code',
  );
  const text = rows.map(({ row }) => row).join();
  expect([rows.length > 10, text.includes(user.secret)]).toEqual([true, false]);
  const raw = [Secret.fromBase32(user.secret).bytes, ...user.recoveryCodes.map((code) => Buffer.from(code))];
  for (const bytes of raw) expect(text).not.toContain(Buffer.from(bytes).toString('hex'));
});

test('a code makes the session a recent login', async () => {
  await auth.ageLogins(user.id);
  const reauthenticate = (code: string) =>
    auth.ask(contract.reauthenticate, { body: { code }, token: user.token });
  const old = await auth.ask(contract.beginTotp, { token: user.token });
  expect(old.error?.error).toBe('reauthentication_required');
  const code = codeOf(user.secret);
  expect((await reauthenticate(code)).status).toBe(204);
  expect(await reauthenticate(code)).toMatchObject(refused);
  const recent = await auth.ask(contract.beginTotp, { token: user.token });
  expect(recent.error?.error).toBe('mfa_enabled');
});

test('reset-mfa removes the second factor', async () => {
  expect(await auth.run(resetMfa, [user.email])).toMatch(/^Removed the second factor of /);
  expect(await auth.audited(user.id, 'mfa_disabled')).toMatchObject([{ actor: 'command' }]);
  expect((await auth.logIn(user.email)).status).toBe(200);
  await expect(auth.run(resetMfa, [user.email])).rejects.toThrow('has no second factor');
  await expect(auth.run(resetMfa, ['unknown@example.com'])).rejects.toThrow('was not found');
});

test('users of MFA_REQUIRED_ROLES can only set up a second factor', async () => {
  const strict = await startAuth({ mfaRoles: ['admin'] });
  try {
    const admin = await strict.person({}, 'admin');
    const listUsers = (token: string) => strict.ask(contract.listUsers, { token });
    expect((await listUsers(admin.token)).error?.error).toBe('mfa_enrollment_required');
    expect((await strict.ask(contract.me, { token: admin.token })).status).toBe(200);
    const logout = { params: { identity: 'identity' }, token: admin.token };
    expect((await strict.ask(contract.identityLogout, logout)).error?.error).toBe('identity_login_disabled');
    await enrol(strict.origin, admin.token);
    const { body } = await strict.refresh(admin.refreshToken);
    expect((await listUsers(body!.access_token)).status).toBe(200);
    const other = await strict.person();
    expect((await strict.ask(contract.listSessions, { token: other.token })).status).toBe(200);
  } finally {
    await strict.stop();
  }
});

describe('after a login at the identity provider', () => {
  const { evil, scene } = useScriptedProvider();
  beforeEach(() => {
    const idi = { sub: 'idi', email: 'idi@example.com', email_verified: true };
    Object.assign(evil.claims, idi);
    evil.userinfo = idi;
  });

  /** Logs in at a provider whose ID token has these authentication methods (`amr`). */
  async function redeem(amr?: unknown) {
    const { code, verifier } = await scene.logInAt(evil, { amr });
    return scene.redeem(code!, verifier);
  }

  test.each(['a compromised password', 'an unlinked identity', 'a disabled account'])(
    'a login that waits for its code cannot be completed after %s',
    async (reason) => {
      const { auth: own } = scene;
      const sub = `eva-${reason.length}`;
      evil.userinfo = { sub, email: `${sub}@example.com`, email_verified: true };
      Object.assign(evil.claims, evil.userinfo);
      const { secret } = await enrol(own.origin, (await redeem()).body!.access_token);
      const mfa_token = mfaTokenOf(await redeem());
      const { id } = (await own.stores.users.findByEmail(`${sub}@example.com`))!;
      const { token } = await own.person({}, 'admin');
      if (reason === 'a compromised password') {
        const options = { params: { id }, body: { compromised: true }, token };
        expect((await own.ask(contract.createTemporaryPassword, options)).status).toBe(200);
      } else if (reason === 'a disabled account') {
        const options = { params: { id }, body: { disabled: true }, token };
        expect((await own.ask(contract.updateUser, options)).status).toBe(200);
      } else {
        const [identity] = await own.stores.identities.list(id);
        const params = { id, identity_id: identity!.id };
        expect((await own.ask(contract.deleteUserIdentity, { params, token })).status).toBe(204);
      }
      const body = { mfa_token, code: codeOf(secret) };
      expect(await own.ask(contract.loginMfa, { body })).toMatchObject(refused);
    },
  );

  test('the code is needed unless the provider has checked a second factor', async () => {
    const { body } = await redeem();
    const { secret } = await enrol(scene.auth.origin, body!.access_token);
    for (const amr of [undefined, ['pwd'], 'mfa', [['mfa']]]) mfaTokenOf(await redeem(amr));
    expect((await redeem(['pwd', 'mfa'])).status).toBe(200);
    const mfa_token = mfaTokenOf(await redeem());
    const login = await scene.auth.ask(contract.loginMfa, { body: { mfa_token, code: codeOf(secret) } });
    expect(login.body).toMatchObject({ user: { email: 'idi@example.com' } });
    const events = await scene.events();
    expect(events[0]).toMatchObject({ event: 'login', details: { identity: evil.issuer, factor: 'totp' } });
  });
});
