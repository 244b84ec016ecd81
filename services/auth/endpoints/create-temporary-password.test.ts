import { beforeAll, describe, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { decode, reasonOf, useAuth, type TestAuth, visible } from '../testing/start-auth.ts';

const auth = useAuth();
let admin: Awaited<ReturnType<TestAuth['person']>>;
beforeAll(async () => {
  admin = await auth.person({}, 'admin');
});

async function reset(id: number, body?: { expires_in: number }) {
  const options = { params: { id }, token: admin.token, ...(body && { body }) };
  const answer = await auth.ask(contract.createTemporaryPassword, options);
  if (answer.error) throw new Error(answer.error.message);
  const { temporary_password: temporary, expires_at: expiresAt } = answer.body;
  return { temporary, expiresAt: new Date(expiresAt) };
}

describe('creating a temporary password', () => {
  test('expires as announced, is recorded, and is shown only in the reply', async () => {
    const { id } = await auth.person();
    const { temporary, expiresAt } = await reset(id, { expires_in: 604_800 });
    expect(Math.abs(expiresAt.getTime() - Date.now() - 604_800_000)).toBeLessThan(60_000);
    const details = { expires_at: expiresAt.toISOString() };
    expect(await auth.audited(id, 'temporary_password_created')).toEqual([
      { actor: `user:${admin.id}`, address: '127.0.0.1', details },
    ]);
    const rows = await auth.sql<{ row: string }>(
      'SELECT "user"::text AS row FROM auth.user UNION SELECT audit::text FROM auth.audit',
    );
    for (const text of [...rows.map(({ row }) => row), ...auth.log]) expect(text).not.toContain(temporary);
  });

  test('replaces an earlier temporary password and ends its session', async () => {
    const { id, email, refreshToken } = await auth.person();
    const first = (await reset(id)).temporary;
    const stranger = (await auth.logIn(email, first)).body!;
    const { temporary } = await reset(id);
    expect(reasonOf(await auth.refresh(stranger.refresh_token))).toBe('revoked');
    expect((await auth.refresh(refreshToken)).status).toBe(200);
    expect((await auth.logIn(email, first)).error?.error).toBe('invalid_credentials');
    expect((await auth.logIn(email, temporary)).status).toBe(200);
  });
});

describe('a login with a temporary password', () => {
  test('opens a session that ends when the password expires, and marks the audit row and each token', async () => {
    const { id, email } = await auth.person();
    const { temporary, expiresAt } = await reset(id, { expires_in: 3_600 });
    const { token, refresh_token } = (await auth.logIn(email, temporary)).body!;
    for (const issued of [token, (await auth.refresh(refresh_token)).body!.access_token])
      expect(decode(issued).claims['must_change_password']).toBe(true);
    const sessions = 'SELECT ends_at FROM auth.session WHERE user_id = $1 AND must_change_password';
    expect(await auth.sql(sessions, id)).toEqual([{ ends_at: expiresAt }]);
    expect((await auth.audited(id, 'login'))[0]).toMatchObject({ details: { password: 'temporary' } });
  });

  test('works once, even for two concurrent logins', async () => {
    const { id, email } = await auth.person();
    const { temporary } = await reset(id);
    const logins = await auth.whileHeld(
      (query) => query('test', 'SELECT FROM auth.user WHERE id = $1 FOR UPDATE', [id]),
      () => Promise.all([auth.logIn(email, temporary), auth.logIn(email, temporary)]),
    );
    expect(logins.map(({ status }) => status).toSorted()).toEqual([200, 401]);
    const details = { reason: 'temporary password used or expired' };
    expect(await auth.audited(id, 'login_failed')).toMatchObject([{ details }]);
  });

  const disable = 'UPDATE auth.user SET disabled = true WHERE id = $1';
  test.each([
    ['expired', 'UPDATE auth.user SET temp_password_expires_at = now() WHERE id = $1'],
    ['of a disabled user', disable],
  ])('fails when it is %s', async (_, statement) => {
    const { id, email } = await auth.person();
    const { temporary } = await reset(id);
    await auth.sql(statement, id);
    expect((await auth.logIn(email, temporary)).error?.error).toBe('invalid_credentials');
  });

  test.each([
    ['another one is made', `UPDATE auth.user SET temp_password_hash = 'another' WHERE id = $1`],
    ['the user is disabled', disable],
  ])('that is under way when %s fails', async (_, statement) => {
    const { id, email } = await auth.person();
    const { temporary } = await reset(id);
    const { error } = await auth.whileHeld(
      (query) => query('test', statement, [id]),
      () => auth.logIn(email, temporary),
    );
    expect(error?.error).toBe('invalid_credentials');
  });
});

test('returns the same reply to wrong passwords with and without a temporary password', async () => {
  const [plain, withTemporary] = [await auth.person(), await auth.person()];
  await reset(withTemporary.id);
  const equalized = auth.equalized();
  const answers = await Promise.all(
    [plain.email, withTemporary.email, 'unknown@example.com'].flatMap((email) =>
      ['a guess', 'k7mp-x2dw-94hr-vbt3'].map((given) => auth.logIn(email, given)),
    ),
  );
  for (const answer of answers) expect(visible(answer)).toEqual(visible(answers[0]!));
  expect(auth.equalized()).toBe(equalized + answers.length);
});

test('without a mail server, POST /api/password/forgot returns 501 before it reads the request', async () => {
  const post = (body: string) => fetch(`${auth.origin}/api/password/forgot`, { method: 'POST', body });
  const replies = await Promise.all([post(''), post('{'), post('{"email":"ann@example.com"}')]);
  for (const reply of replies)
    expect(await reply.json()).toMatchObject({ error: 'mail_disabled', code: 501 });
});
