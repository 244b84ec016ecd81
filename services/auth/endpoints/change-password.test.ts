import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { createSessionStore } from '../sessions/session-store.ts';
import { holdOpen, untilBlocked } from '../../../test/support/locks.ts';
import { decode, longBackoff, startAuth, type TestAuth } from '../testing.ts';
import { createUserStore } from '../user-store.ts';

const password = 'wooden lantern drifts past nine';
const another = 'eleven quiet herons read maps';
let auth: TestAuth;

beforeAll(async () => {
  auth = await startAuth({ backoff: longBackoff });
});
afterAll(() => auth.stop());

async function logIn(email: string, given = password) {
  const answer = await call(auth.origin, contract.login, { body: { email, password: given } });
  if (answer.error) throw new Error(answer.error.message);
  const { token, refresh_token: refreshToken } = answer.body;
  return { token, refreshToken, sessionId: Number(decode(token).claims['sid']) };
}

/** Somebody new, logged in. */
async function person() {
  const email = `${randomUUID()}@example.com`;
  await auth.addUser(email, password);
  const { id } = (await auth.accounts.users.findByEmail(email))!;
  return { id, email, ...(await logIn(email)) };
}

/** Somebody new whose one session began with a temporary password. */
async function personWithTemporary(own: string | null = password) {
  const email = `${randomUUID()}@example.com`;
  const { users, passwords } = auth.accounts;
  const passwordHash = own === null ? null : await passwords.hash(own);
  const { id } = (await users.create({ email, name: 'A Person', passwordHash, roles: ['user'] }))!;
  const temporary = 'k7mp-x2dw-94hr-vbt3';
  await users.setTemporaryPassword(id, await passwords.hash(temporary), 3_600);
  return { id, email, temporary, ...(await logIn(email, temporary)) };
}

const change = (token: string, current_password: string, new_password = another) =>
  call(auth.origin, contract.changePassword, { body: { current_password, new_password }, token });

const hashOf = async (id: number) => (await auth.accounts.users.findById(id))!.passwordHash;

async function isEnded({ refreshToken }: { refreshToken: string }): Promise<boolean> {
  const body = { grant_type: 'refresh_token', refresh_token: refreshToken };
  const { error } = await call(auth.origin, contract.token, { body });
  return error?.details?.[0]?.message === 'revoked';
}

/** Refused with a line for each of these fields. */
function refusal(...paths: string[]) {
  const details = paths.map((path) => expect.objectContaining({ path: `body.${path}` }) as unknown);
  return { status: 422, error: { error: 'validation_failed', details } };
}

test('the new password is the one from now on, all sessions end, and it is on record', async () => {
  const user = await person();
  const elsewhere = await logIn(user.email);
  expect((await change(user.token, password)).status).toBe(204);
  const { passwords } = auth.accounts;
  const hash = await hashOf(user.id);
  expect(await passwords.verify(hash, another)).toBe(true);
  expect(await passwords.verify(hash, password)).toBe(false);
  expect(await isEnded(user)).toBe(true);
  expect(await isEnded(elsewhere)).toBe(true);
  const { rows } = await auth.database.query(
    'test',
    `SELECT actor, host(address) AS address, details FROM auth.audit WHERE user_id = $1 AND event = 'password_changed'`,
    [user.id],
  );
  expect(rows).toEqual([{ actor: `user:${user.id}`, address: '127.0.0.1', details: {} }]);
});

test('what is refused says which field and why, and changes nothing', async () => {
  const user = await person();
  const before = await hashOf(user.id);
  expect(await change(user.token, 'a guess')).toMatchObject(refusal('current_password'));
  expect(await change(user.token, password, 'too short')).toMatchObject(refusal('new_password'));
  expect(await change(user.token, 'a guess', 'too short')).toMatchObject(
    refusal('current_password', 'new_password'),
  );
  const { error } = await change(user.token, password, user.email);
  expect(error?.details?.[0]?.message).toMatch(/^Is too easy to guess: it has your name/);
  expect(await change(user.token, password, password)).toMatchObject(refusal('new_password'));
  expect(await hashOf(user.id)).toBe(before);
  expect(await isEnded(user)).toBe(false);
});

test('who guesses the current one has to wait', async () => {
  const { token, email } = await person();
  const statuses = new Set<number>();
  for (let guess = 0; guess < 10; guess += 1) statuses.add((await change(token, `guess ${guess}`)).status);
  expect([...statuses]).toEqual([422]);
  const answer = await change(token, 'one guess more');
  expect(answer.error?.error).toBe('rate_limited');
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  // They are counted together with those at the login.
  await auth.database.query('test', 'UPDATE auth.session SET ended_at = now() WHERE id = $1', [
    Number(decode(token).claims['sid']),
  ]);
  const login = await call(auth.origin, contract.login, { body: { email, password: 'a guess' } });
  expect(login.error?.error).toBe('rate_limited');
});

describe('while it is changed', () => {
  test('it is not overwritten by somebody who knew the one before', async () => {
    const user = await person();
    const otherHash = await auth.accounts.passwords.hash('the password of an attacker');
    const release = await holdOpen(auth.database, (query) =>
      createUserStore(query).setPassword(user.id, otherHash),
    );
    const answer = change(user.token, password);
    await untilBlocked(auth.database);
    await release();
    expect(await answer).toMatchObject(refusal('current_password'));
    expect(await hashOf(user.id)).toBe(otherHash);
  });

  test.each<[string, () => Promise<{ id: number; email: string; given: string }>]>([
    ['own', async () => ({ ...(await person()), given: password })],
    [
      'temporary',
      async () => {
        const user = await personWithTemporary();
        const { users, passwords } = auth.accounts;
        await users.setTemporaryPassword(user.id, await passwords.hash(user.temporary), 3_600);
        return { ...user, given: user.temporary };
      },
    ],
  ])('nobody logs in with the %s one from before', async (_, make) => {
    const { id, email, given } = await make();
    const newHash = await auth.accounts.passwords.hash(another);
    const release = await holdOpen(auth.database, async (query) => {
      await createUserStore(query).setPassword(id, newHash);
      await createSessionStore(query).endAll(id);
    });
    const login = call(auth.origin, contract.login, { body: { email, password: given } });
    await untilBlocked(auth.database);
    await release();
    expect((await login).error?.error).toBe('invalid_credentials');
  });

  test('a login that is under way ends with the others', async () => {
    const user = await person();
    const { users } = auth.accounts;
    const { passwordHash } = (await users.findById(user.id))!;
    const session = { userId: user.id, device: 'x', address: '127.0.0.1', mustChangePassword: false };
    const release = await holdOpen(auth.database, async (query) => {
      await createUserStore(query).lockIfUnchanged(user.id, passwordHash);
      await createSessionStore(query).open(session, Buffer.from(user.email));
    });
    const answer = change(user.token, password);
    await untilBlocked(auth.database);
    await release();
    expect((await answer).status).toBe(204);
    const live = await createSessionStore(auth.database.query).list(user.id, undefined, 10);
    expect(live).toEqual([]);
  });

  test.each([
    ['the session ends', 'UPDATE auth.session SET ended_at = now() WHERE user_id = $1'],
    ['the session expires', 'UPDATE auth.session SET ends_at = now() WHERE user_id = $1'],
    ['the user is disabled', 'UPDATE auth.user SET disabled = true WHERE id = $1'],
    ['the user is deleted', 'DELETE FROM auth.user WHERE id = $1'],
  ])('%s: 401', async (_, statement) => {
    const user = await person();
    const release = await holdOpen(auth.database, async (query) => {
      await createUserStore(query).lock(user.id);
      await query('test', statement, [user.id]);
    });
    const answer = change(user.token, password);
    await untilBlocked(auth.database);
    await release();
    const { error, headers } = await answer;
    expect(error).toMatchObject({ error: 'invalid_token', code: 401 });
    expect(headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
  });
});

describe('after a temporary password', () => {
  test('that one is the current one, also when it has expired; it is gone then', async () => {
    const user = await personWithTemporary();
    await auth.database.query(
      'test',
      `UPDATE auth.user SET temp_password_expires_at = now() - interval '1 s' WHERE id = $1`,
      [user.id],
    );
    expect((await change(user.token, user.temporary)).status).toBe(204);
    const { rows } = await auth.database.query(
      'test',
      `SELECT num_nonnulls(temp_password_hash, temp_password_expires_at, temp_password_used_at) AS left
       FROM auth.user WHERE id = $1`,
      [user.id],
    );
    expect(rows).toEqual([{ left: 0 }]);
    expect(await isEnded(user)).toBe(true);
    expect((await logIn(user.email, another)).token).toBeTruthy();
  });

  test("the person's own is, too", async () => {
    const user = await personWithTemporary();
    expect((await change(user.token, password)).status).toBe(204);
  });

  test('who had none before gets one', async () => {
    const user = await personWithTemporary(null);
    expect((await change(user.token, user.temporary)).status).toBe(204);
    expect(await auth.accounts.passwords.verify(await hashOf(user.id), another)).toBe(true);
  });

  test('neither it nor the own one can be the new one', async () => {
    const user = await personWithTemporary();
    for (const [current, chosen] of [
      [user.temporary, user.temporary],
      [user.temporary, password],
      [password, user.temporary],
    ] as const) {
      expect(await change(user.token, current, chosen)).toMatchObject(refusal('new_password'));
    }
  });

  test('in a session of the own password it is nothing', async () => {
    const user = await personWithTemporary();
    const { token } = await logIn(user.email);
    expect(await change(token, user.temporary)).toMatchObject(refusal('current_password'));
  });
});
