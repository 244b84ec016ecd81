import { describe, expect, test } from '@jest/globals';
import type { Database } from '@content-platform/chassis';
import * as contract from '@content-platform/contract';
import { createSessionStore } from '../sessions/session-store.ts';
import { longBackoff, password, useAuth } from '../testing/start-auth.ts';
import { createUserStore } from '../user-store.ts';

const another = 'eleven quiet herons read maps';
const temporary = 'k7mp-x2dw-94hr-vbt3';
const auth = useAuth({ backoff: longBackoff });

const setTemporary = async (id: number) =>
  auth.stores.users.setTemporaryPassword(id, await auth.accounts.passwords.hash(temporary), 3_600);

async function personWithTemporary() {
  const { id, email } = await auth.person();
  await setTemporary(id);
  return { id, email, token: (await auth.logIn(email, temporary)).body!.token };
}

const change = (token: string, current_password: string, new_password = another) =>
  auth.ask(contract.changePassword, { body: { current_password, new_password }, token });

const hashOf = async (id: number) => (await auth.stores.users.findById(id))!.passwordHash;

/** Returns the expected refusal, with one detail for each of these fields. */
function refusal(...paths: string[]) {
  const details = paths.map((path) => expect.objectContaining({ path: `body.${path}` }) as unknown);
  return { status: 422, error: { error: 'validation_failed', details } };
}

test('records a change without the passwords', async () => {
  const user = await auth.person();
  expect((await change(user.token, password)).status).toBe(204);
  expect(await auth.audited(user.id, 'password_changed')).toEqual([
    { actor: `user:${user.id}`, address: '127.0.0.1', details: {} },
  ]);
});

test('a refusal names the field and the reason, and changes nothing', async () => {
  const user = await auth.person();
  const before = await hashOf(user.id);
  expect(await change(user.token, 'a guess', 'too short')).toMatchObject(
    refusal('current_password', 'new_password'),
  );
  const { error } = await change(user.token, password, user.email);
  expect(error?.details?.[0]?.message).toMatch(/^Is too easy to guess\. It contains your name/);
  expect(await hashOf(user.id)).toBe(before);
  expect((await auth.refresh(user.refreshToken)).status).toBe(200);
});

test('throttles guesses of the current password', async () => {
  const { token, email, sessionId } = await auth.person();
  const statuses = new Set<number>();
  for (let guess = 0; guess < 10; guess += 1) statuses.add((await change(token, `guess ${guess}`)).status);
  expect([...statuses]).toEqual([422]);
  const answer = await change(token, 'one guess more');
  expect(answer.error?.error).toBe('rate_limited');
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  // Wrong current passwords are counted together with failed logins.
  await auth.sql('UPDATE auth.session SET ended_at = now() WHERE id = $1', sessionId);
  expect((await auth.logIn(email, 'a guess')).error?.error).toBe('rate_limited');
});

describe('while it is changed', () => {
  test('refuses a second change with the earlier password', async () => {
    const user = await auth.person();
    const otherHash = await auth.accounts.passwords.hash('the password of an attacker');
    const answer = await auth.whileHeld(
      (query) => createUserStore(query).setPassword(user.id, otherHash),
      () => change(user.token, password),
    );
    expect(answer).toMatchObject(refusal('current_password'));
    expect(await hashOf(user.id)).toBe(otherHash);
  });

  test.each([password, temporary])('refuses a login with the earlier password %j', async (given) => {
    const { id, email } = await auth.person();
    await setTemporary(id);
    const newHash = await auth.accounts.passwords.hash(another);
    const setPassword = async (query: Database['query']) => {
      await createUserStore(query).setPassword(id, newHash);
      await createSessionStore(query).endAll(id);
    };
    const { error } = await auth.whileHeld(setPassword, () => auth.logIn(email, given));
    expect(error?.error).toBe('invalid_credentials');
  });

  test('ends the session of a concurrent login', async () => {
    const user = await auth.person();
    const passwordHash = await hashOf(user.id);
    const session = { userId: user.id, device: 'x', address: '127.0.0.1', mustChangePassword: false };
    const openSession = async (query: Database['query']) => {
      await createUserStore(query).lockIfUnchanged(user.id, passwordHash);
      await createSessionStore(query).add(session, Buffer.from(user.email));
    };
    const { status } = await auth.whileHeld(openSession, () => change(user.token, password));
    expect(status).toBe(204);
    expect(await auth.stores.sessions.list(user.id, undefined, 10)).toEqual([]);
  });

  test.each([
    ['the session ends', 'UPDATE auth.session SET ended_at = now() WHERE user_id = $1'],
    ['the session expires', 'UPDATE auth.session SET ends_at = now() WHERE user_id = $1'],
    ['the user is disabled', 'UPDATE auth.user SET disabled = true WHERE id = $1'],
    ['the user is deleted', 'DELETE FROM auth.user WHERE id = $1'],
  ])('returns 401 if %s', async (_, statement) => {
    const user = await auth.person();
    const lockAndRun = async (query: Database['query']) => {
      await createUserStore(query).lock(user.id);
      await query('test', statement, [user.id]);
    };
    const { error, headers } = await auth.whileHeld(lockAndRun, () => change(user.token, password));
    expect(error).toMatchObject({ error: 'invalid_token', code: 401 });
    expect(headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
  });
});

describe('after a temporary password', () => {
  test('accepts it as the current one, even if it has expired, and deletes it', async () => {
    const user = await personWithTemporary();
    const expire = `UPDATE auth.user SET temp_password_expires_at = now() - interval '1 s' WHERE id = $1`;
    await auth.sql(expire, user.id);
    expect((await change(user.token, temporary)).status).toBe(204);
    const left = `SELECT num_nonnulls(temp_password_hash, temp_password_expires_at, temp_password_used_at) AS left
                  FROM auth.user WHERE id = $1`;
    expect(await auth.sql(left, user.id)).toEqual([{ left: 0 }]);
    expect((await auth.logIn(user.email, another)).status).toBe(200);
  });

  test("accepts the user's own password as the current one, too", async () => {
    expect((await change((await personWithTemporary()).token, password)).status).toBe(204);
  });

  test('sets the first password of a user without one', async () => {
    const { id, token } = await personWithTemporary();
    await auth.sql('UPDATE auth.user SET password_hash = NULL WHERE id = $1', id);
    expect((await change(token, temporary)).status).toBe(204);
    expect(await auth.accounts.passwords.verify(await hashOf(id), another)).toBe(true);
  });

  test('refuses both as the new password', async () => {
    const { token } = await personWithTemporary();
    for (const current of [temporary, password])
      for (const chosen of [temporary, password])
        expect(await change(token, current, chosen)).toMatchObject(refusal('new_password'));
  });

  test("refuses the temporary password in a session that began with the user's own password", async () => {
    const { id, token } = await auth.person();
    await setTemporary(id);
    expect(await change(token, temporary)).toMatchObject(refusal('current_password'));
  });
});
