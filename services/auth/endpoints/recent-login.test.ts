import { beforeEach, describe, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { endAllSessions } from '../commands/keys.ts';
import { holdOpen, untilBlocked } from '../../../test/support/locks.ts';
import { until } from '../../../test/support/wait.ts';
import { keySecret, longBackoff, password, reasonOf, useAuth, type TestAuth } from '../testing/start-auth.ts';

const auth = useAuth({ backoff: longBackoff });
let admin: Awaited<ReturnType<TestAuth['person']>>;
beforeEach(async () => {
  admin = await auth.person({}, 'user', 'admin');
});

const reauthenticate = (token: string, given = password) =>
  auth.ask(contract.reauthenticate, { body: { password: given }, token });
const update = (id: number, body: contract.BodyInput<typeof contract.updateUser>) =>
  auth.ask(contract.updateUser, { params: { id }, body, token: admin.token });

describe('an access token of an admin whose login is 16 minutes old', () => {
  test('can disable a user after the password was sent, for this session only', async () => {
    const other = (await auth.logIn(admin.email)).body!.token;
    await auth.ageLogins(admin.id);
    expect((await reauthenticate(other)).status).toBe(204);
    const { id } = await auth.person();
    expect((await update(id, { disabled: true })).error?.error).toBe('reauthentication_required');
    expect((await reauthenticate(admin.token)).status).toBe(204);
    await auth.sql(`UPDATE auth.session SET reauthenticated_at = reauthenticated_at - interval '14 min'`);
    expect((await update(id, { disabled: true })).status).toBe(200);
  });

  test('does not become recent by a refresh', async () => {
    await auth.ageLogins(admin.id);
    const { body } = await auth.refresh(admin.refreshToken);
    const options = { params: { id: (await auth.person()).id }, token: body!.access_token };
    expect((await auth.ask(contract.deleteUser, options)).error?.error).toBe('reauthentication_required');
  });
});

test('guesses of the password are limited as those of a login', async () => {
  const thief = await auth.person();
  for (let guess = 0; guess < 10; guess += 1)
    expect((await reauthenticate(thief.token, `guess ${guess}`)).error?.error).toBe('invalid_credentials');
  // The thief is in the network of a known session, so its guesses are checked; their reply does not say so.
  expect((await reauthenticate(thief.token, 'guess')).error?.error).toBe('rate_limited');
  expect(await auth.audited(thief.id, 'reauthentication_failed')).toHaveLength(11);
});

test('end-all-sessions logs everyone out in short transactions, and a new login works', async () => {
  process.env['AUTH_KEY_SECRET'] = keySecret;
  const one = await auth.person();
  const batch = `INSERT INTO auth.session (user_id, device, address, must_change_password, ends_at)
    SELECT $1::bigint, '', '::1', false, now() + interval '1 day' FROM generate_series(1, 10000)`;
  await auth.sql(batch, one.id);
  const two = await auth.person();
  const release = await holdOpen(auth.database, (query) =>
    query('hold', 'SELECT FROM auth.session WHERE id = $1 FOR UPDATE', [two.sessionId]),
  );
  const ending = auth.run(endAllSessions, []);
  await untilBlocked(auth.database);
  // The first batch has ended, although the second one waits.
  const meanwhile = await auth.refresh(one.refreshToken).finally(release);
  expect(await ending).toMatch(/^Ended \d{5} sessions and replaced the signing keys\./);
  expect(reasonOf(meanwhile)).toBe('revoked');
  const inFeed = 'SELECT FROM auth.revocation WHERE session_id = ANY ($1)';
  expect(await auth.sql(inFeed, [one.sessionId, two.sessionId])).toHaveLength(2);
  delete process.env['AUTH_KEY_SECRET'];
  for (const { refreshToken } of [one, two])
    expect(reasonOf(await auth.refresh(refreshToken))).toBe('revoked');
  for (const { token } of [one, two]) await until('the token is refused', () => auth.isRefused(token));
  // For a moment, logins still get a token of the old key.
  await until('a new login works', async () => {
    const { body } = await auth.logIn(one.email);
    return (await auth.ask(contract.me, { token: body!.token })).status === 200;
  });
});
