import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { holdOpen, untilBlocked } from '../../../test/support/locks.ts';
import { decode, startAuth, type TestAuth } from '../testing.ts';

const password = 'wooden lantern drifts past nine';
let auth: TestAuth;
let admin: string;

beforeAll(async () => {
  auth = await startAuth();
  await auth.addUser('root@example.com', password, 'admin');
  admin = (await logIn('root@example.com')).body!.token;
});
afterAll(() => auth.stop());

const logIn = (email: string, given = password) =>
  call(auth.origin, contract.login, { body: { email, password: given } });

async function person(own: string | null = password) {
  const { users, passwords } = auth.accounts;
  const email = `${randomUUID()}@example.com`;
  const passwordHash = own === null ? null : await passwords.hash(own);
  const { id } = (await users.create({ email, name: 'A Person', passwordHash, roles: ['sre'] }))!;
  return { id, email };
}

async function reset(id: number, body?: { expires_in: number }) {
  const options = { params: { id }, token: admin, ...(body && { body }) };
  const answer = await call(auth.origin, contract.createTemporaryPassword, options);
  if (answer.error) throw new Error(answer.error.message);
  const { temporary_password: temporary, expires_at: expiresAt } = answer.body;
  return { answer, temporary, expiresAt: Date.parse(expiresAt) };
}

const sql = async (text: string, ...values: unknown[]) =>
  (await auth.database.query<Record<string, unknown>>('test', text, values)).rows;

const refresh = (refresh_token: string) =>
  call(auth.origin, contract.token, { body: { grant_type: 'refresh_token', refresh_token } });

describe('made', () => {
  test('for a day, or as long as was said, and shown only here', async () => {
    const { id } = await person();
    const { answer, temporary, expiresAt } = await reset(id);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(Math.abs(expiresAt - Date.now() - 86_400_000)).toBeLessThan(60_000);
    const week = await reset(id, { expires_in: 604_800 });
    expect(Math.abs(week.expiresAt - Date.now() - 604_800_000)).toBeLessThan(60_000);
    const rows = await sql(
      'SELECT "user"::text AS row FROM auth.user UNION SELECT audit::text FROM auth.audit',
    );
    for (const text of [...rows.map(({ row }) => String(row)), ...auth.log]) {
      expect(text).not.toContain(temporary);
      expect(text).not.toContain(week.temporary);
    }
  });

  test('it is on record', async () => {
    const { id } = await person();
    const { expiresAt } = await reset(id, { expires_in: 60 });
    const text = `SELECT event, actor, host(address) AS address, details FROM auth.audit WHERE user_id = $1`;
    const root = (await auth.accounts.users.findByEmail('root@example.com'))!;
    expect(await sql(text, id)).toEqual([
      {
        event: 'temporary_password_created',
        actor: `user:${root.id}`,
        address: '127.0.0.1',
        details: { expires_at: new Date(expiresAt).toISOString() },
      },
    ]);
  });

  test('for nobody: 404', async () => {
    const params = { id: 9_999 };
    const { error } = await call(auth.origin, contract.createTemporaryPassword, { params, token: admin });
    expect(error?.error).toBe('not_found');
  });

  test('another one takes the place of the first, and of a session that began with it', async () => {
    const { id, email } = await person();
    const first = (await reset(id)).temporary;
    const own = (await logIn(email)).body!;
    const stranger = (await logIn(email, first)).body!;
    const { temporary } = await reset(id);
    expect((await refresh(stranger.refresh_token)).error?.details?.[0]?.message).toBe('revoked');
    expect((await refresh(own.refresh_token)).status).toBe(200);
    expect((await logIn(email, first)).error?.error).toBe('invalid_credentials');
    expect((await logIn(email, temporary)).status).toBe(200);
  });
});

describe('a login with it', () => {
  test('opens one session that can do nothing but choose a password, and lasts no longer than it', async () => {
    const { id, email } = await person();
    const { temporary, expiresAt } = await reset(id, { expires_in: 3_600 });
    const { body } = await logIn(email, temporary);
    expect(body).toMatchObject({ must_change_password: true, user: { id } });
    const ask = (token: string) => ({
      sessions: call(auth.origin, contract.listSessions, { token }),
      me: call(auth.origin, contract.me, { token }),
    });
    for (const token of [body!.token, (await refresh(body!.refresh_token)).body!.access_token]) {
      expect(decode(token).claims['must_change_password']).toBe(true);
      const { sessions, me } = ask(token);
      expect((await sessions).error).toMatchObject({ error: 'password_change_required', code: 403 });
      expect((await me).body).toMatchObject({ id, email });
    }
    const text = 'SELECT ends_at, must_change_password FROM auth.session WHERE user_id = $1';
    expect(await sql(text, id)).toEqual([{ ends_at: new Date(expiresAt), must_change_password: true }]);
    const logins = `SELECT details FROM auth.audit WHERE user_id = $1 AND event = 'login'`;
    expect(await sql(logins, id)).toMatchObject([{ details: { password: 'temporary' } }]);
    expect((await call(auth.origin, contract.logout, { token: body!.token })).status).toBe(204);
  });

  test('works once, also when two come at the same time', async () => {
    const { id, email } = await person();
    const { temporary } = await reset(id);
    const release = await holdOpen(auth.database, (query) =>
      query('test', 'SELECT FROM auth.user WHERE id = $1 FOR UPDATE', [id]),
    );
    const logins = [logIn(email, temporary), logIn(email, temporary)];
    await untilBlocked(auth.database);
    await release();
    const statuses = (await Promise.all(logins)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, 401]);
    expect((await logIn(email, temporary)).error?.error).toBe('invalid_credentials');
    const reasons = `SELECT DISTINCT details->>'reason' AS reason FROM auth.audit
                     WHERE user_id = $1 AND event = 'login_failed'`;
    expect(await sql(reasons, id)).toEqual([{ reason: 'temporary password used or expired' }]);
  });

  test('leaves the own password working, with all its rights', async () => {
    const { id, email } = await person();
    await reset(id);
    const { body } = await logIn(email);
    expect(body).not.toHaveProperty('must_change_password');
    const { claims } = decode(body!.token);
    expect(claims).toMatchObject({ scope: 'jobs:manage pulse:view' });
    expect(claims).not.toHaveProperty('must_change_password');
  });

  test('is for those without a password, too', async () => {
    const { id, email } = await person(null);
    const { temporary } = await reset(id);
    expect(await logIn(email, temporary)).toMatchObject({
      status: 200,
      body: { must_change_password: true },
    });
    expect((await auth.accounts.users.findById(id))!.passwordHash).toBeNull();
  });

  test.each([
    ['expired', 'UPDATE auth.user SET temp_password_expires_at = now() WHERE id = $1'],
    ['of somebody disabled', 'UPDATE auth.user SET disabled = true WHERE id = $1'],
  ])('fails when it is %s', async (_, statement) => {
    const { id, email } = await person();
    const { temporary } = await reset(id);
    await sql(statement, id);
    expect((await logIn(email, temporary)).error?.error).toBe('invalid_credentials');
  });

  test('that is under way when another one is made, or they are disabled, fails', async () => {
    const { id, email } = await person();
    for (const statement of [
      `UPDATE auth.user SET temp_password_hash = 'another' WHERE id = $1`,
      'UPDATE auth.user SET disabled = true WHERE id = $1',
    ]) {
      const { temporary } = await reset(id);
      const release = await holdOpen(auth.database, (query) => query('test', statement, [id]));
      const login = logIn(email, temporary);
      await untilBlocked(auth.database);
      await release();
      expect((await login).error?.error).toBe('invalid_credentials');
    }
  });
});

test('wrong passwords are answered alike, whether there is a temporary one or not', async () => {
  const [plain, withTemporary] = [await person(), await person()];
  await reset(withTemporary.id);
  const equalized = auth.equalized();
  const answers = await Promise.all(
    [plain.email, withTemporary.email, 'nobody@example.com'].flatMap((email) =>
      ['a guess', 'k7mp-x2dw-94hr-vbt3'].map(async (given) => {
        const { error, status, headers } = await logIn(email, given);
        // The number of database calls stays, their time goes.
        const timing = headers.get('server-timing')!.replace(/dur=[\d.]+/, '');
        return { status, error: { ...error, request_id: '' }, names: [...headers.keys()], timing };
      }),
    ),
  );
  for (const answer of answers) expect(answer).toEqual(answers[0]);
  expect(auth.equalized()).toBe(equalized + answers.length);
});
