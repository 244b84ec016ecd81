import { afterAll, beforeAll, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { startMailServer, tokenIn } from '../../../test/support/mail-server.ts';
import { codeOf, enrol, mfaTokenOf } from '../../../test/support/totp.ts';
import { useStarted } from '../../../test/support/use-started.ts';
import { until } from '../../../test/support/wait.ts';
import { retention } from '../retention.ts';
import { createResetStore } from './reset-store.ts';
import { password, reasonOf, useAuth, visible } from '../testing/start-auth.ts';

const newPassword = 'eleven quiet herons read maps';
let stopSending: () => Promise<void>;
afterAll(() => stopSending());
const auth = useAuth({ sendsMail: true });
const server = useStarted(startMailServer);
beforeAll(() => void (stopSending = auth.sendMails(server.port)));

const from = (address: string) => ({ 'X-Forwarded-For': address });
const forgot = (email: string, headers: Record<string, string> = {}) =>
  auth.ask(contract.forgotPassword, { body: { email }, headers });
const reset = (token: string, new_password = newPassword) =>
  auth.ask(contract.resetPassword, { body: { token, new_password } });
const invalid = { status: 400, error: { error: 'invalid_reset_token' } };
const refused = { status: 401, error: { error: 'invalid_credentials' } };

/** Waits until no request is waiting, so that every mail that will be sent was sent. */
const untilSent = () =>
  until('all mails are sent', async () => {
    const due = 'SELECT FROM auth.password_reset WHERE next_attempt_at IS NOT NULL';
    return (await auth.sql(due)).length === 0;
  });

async function tokenFor(email: string): Promise<string> {
  const before = server.to(email).length;
  expect(await forgot(email)).toMatchObject({ status: 202 });
  return until('a mail arrives', () => tokenIn(server.to(email)[before] ?? ''));
}
const older = 'UPDATE auth.password_reset SET created_at = created_at - $1::interval WHERE user_id = $2';
/** Lets the user request another mail. */
const makeOlder = (interval: string, userId: number) => auth.sql(older, interval, userId);
const eventsOf = async (userId: number) =>
  (await auth.stores.audit.list({ userId }, undefined, 100)).map(({ event }) => event);

test('a mail leads to a new password, ends all sessions, and its link works once', async () => {
  const user = await auth.person();
  expect(await forgot(` ${user.email.toUpperCase()} `)).toMatchObject({ status: 202 });
  const token = await until('a mail arrives', () => tokenIn(server.to(user.email)[0] ?? ''));
  const [mail] = server.to(user.email);
  expect(mail).toMatch(new RegExp(`^From: Platform <no-reply@example\\.com>\r\nTo: ${user.email}\r$`, 'm'));
  expect(mail).toMatch(/^Auto-Submitted: auto-generated\r$/m);
  expect(mail).toContain(`\r\nhttps://app.example.com/reset#token=${token}\r\n`);

  expect(await reset(token)).toMatchObject({ status: 204 });
  expect(reasonOf(await auth.refresh(user.refreshToken))).toBe('revoked');
  expect(await auth.logIn(user.email)).toMatchObject(refused);
  expect((await auth.logIn(user.email, newPassword)).status).toBe(200);
  expect(await reset(token, password)).toMatchObject(invalid);
  const audit = `SELECT event, actor, host(address) AS address FROM auth.audit
                 WHERE user_id = $1 AND event LIKE 'password_reset%' ORDER BY id`;
  expect(await auth.sql(audit, user.id)).toEqual([
    { event: 'password_reset_requested', actor: null, address: '127.0.0.1' },
    { event: 'password_reset', actor: `user:${user.id}`, address: '127.0.0.1' },
  ]);
});

test('the database has the token as a hash only, once the mail was sent, and the log never has it', async () => {
  const { email } = await auth.person();
  await stopSending();
  await forgot(email);
  const rows = `SELECT encode(encrypted_token, 'escape') || encode(token_hash, 'escape') AS stored
                FROM auth.password_reset WHERE encrypted_token IS NOT NULL`;
  const before = (await auth.sql<{ stored: string }>(rows)).map(({ stored }) => stored).join();
  stopSending = auth.sendMails(server.port);
  const token = await until('a mail arrives', () => tokenIn(server.to(email)[0] ?? ''));
  await untilSent();
  expect(await auth.sql(rows)).toEqual([]);
  expect(before).not.toBe('');
  for (const text of [before, ...auth.log]) expect(text).not.toContain(token);
});

test('a refused password leaves the link valid', async () => {
  const { id, email } = await auth.person();
  const token = await tokenFor(email);
  for (const weak of ['too short', 'password password password', `${email} and more`]) {
    const { status, error } = await reset(token, weak);
    expect([status, error?.details?.[0]?.path]).toEqual([422, 'body.new_password']);
  }
  expect(await eventsOf(id)).not.toContain('password_reset');
  expect((await reset(token)).status).toBe(204);
});

test('of two requests with one token at the same time, one succeeds', async () => {
  const { id, email } = await auth.person();
  const token = await tokenFor(email);
  const replies = await auth.whileHeld(
    (query) => query('test', 'SELECT FROM auth.user WHERE id = $1 FOR UPDATE', [id]),
    () => Promise.all([reset(token), reset(token, 'another five quiet words here')]),
  );
  expect(replies.map(({ status }) => status).toSorted()).toEqual([204, 400]);
});

test.each(['x', 'x'.repeat(43), '\n', 'é'.repeat(300)])('refuses the token %.10j', async (token) => {
  expect(await reset(token)).toMatchObject(invalid);
});

test.each<[string, (user: { id: number; token: string }) => Promise<unknown>]>([
  ['expired', ({ id }) => makeOlder('31 minutes', id)],
  ['of a disabled user', ({ id }) => auth.sql('UPDATE auth.user SET disabled = true WHERE id = $1', id)],
  ['of a deleted user', ({ id }) => auth.stores.users.delete(id)],
  [
    'whose user has changed the password',
    ({ token }) =>
      auth.ask(contract.changePassword, {
        token,
        body: { current_password: password, new_password: 'another five quiet words here' },
      }),
  ],
  [
    'of an account that an administrator has marked as compromised',
    async ({ id }) => {
      const { token } = await auth.person({}, 'admin');
      const body = { expires_in: 3_600, compromised: true };
      await auth.ask(contract.createTemporaryPassword, { params: { id }, token, body });
    },
  ],
  [
    'of a user who was disabled meanwhile',
    async ({ id }) => {
      const { token } = await auth.person({}, 'admin');
      for (const disabled of [true, false])
        await auth.ask(contract.updateUser, { params: { id }, token, body: { disabled } });
    },
  ],
])('refuses a token %s', async (_, change) => {
  const user = await auth.person();
  const token = await tokenFor(user.email);
  await change(user);
  expect(await reset(token)).toMatchObject(invalid);
});

test('a new password makes earlier links and an unsent mail invalid', async () => {
  const { id, email } = await auth.person();
  const first = await tokenFor(email);
  await makeOlder('6 minutes', id);
  const second = await tokenFor(email);
  await makeOlder('6 minutes', id);
  await stopSending();
  await forgot(email);
  expect((await reset(second)).status).toBe(204);
  stopSending = auth.sendMails(server.port);
  expect(await reset(first)).toMatchObject(invalid);
  await untilSent();
  expect(server.to(email)).toHaveLength(2);
});

test('the second factor stays, and a login that waits for it ends', async () => {
  const user = await auth.person();
  const { secret } = await enrol(auth.origin, user.token);
  const complete = (mfa_token: string) =>
    auth.ask(contract.loginMfa, { body: { mfa_token, code: codeOf(secret) } });
  const waiting = mfaTokenOf(await auth.logIn(user.email));
  // A login at an identity provider also waits.
  await auth.sql(
    `UPDATE auth.mfa_login SET password_hash = NULL, identity_issuer = 'https://id.example', id_token = '', suborgs = '{}'
     WHERE user_id = $1`,
    user.id,
  );
  expect((await reset(await tokenFor(user.email))).status).toBe(204);
  expect(await complete(waiting)).toMatchObject(refused);
  expect((await complete(mfaTokenOf(await auth.logIn(user.email, newPassword)))).status).toBe(200);
});

test('one mail for simultaneous requests, one in 5 minutes, and 5 in a day', async () => {
  const { id, email } = await auth.person();
  const other = auth.sendMails(server.port);
  for (let mail = 1; mail <= 7; mail += 1) {
    await Promise.all(Array.from({ length: 5 }, () => forgot(email)));
    await untilSent();
    expect(server.to(email)).toHaveLength(Math.min(mail, 5));
    await makeOlder('4 minutes', id);
    await forgot(email);
    await untilSent();
    expect(server.to(email)).toHaveLength(Math.min(mail, 5));
    await makeOlder('2 minutes', id);
  }
  await makeOlder('24 hours', id);
  await tokenFor(email).then(untilSent);
  await other();
});

test('strangers cannot use up the mails for networks where the user has logged in', async () => {
  const { id, email } = await auth.person(from('2001:db8:1:2::1'));
  for (let mail = 1; mail <= 6; mail += 1) {
    await forgot(email, from('2001:db8:1:3::1'));
    await untilSent();
    expect(server.to(email)).toHaveLength(Math.min(mail, 5));
    await makeOlder('6 minutes', id);
  }
  for (let mail = 6; mail <= 11; mail += 1) {
    await stopSending();
    await forgot(email, from('2001:db8:1:3::1'));
    await forgot(email, from('2001:db8:1:2:ffff::9'));
    stopSending = auth.sendMails(server.port);
    await untilSent();
    expect(server.to(email)).toHaveLength(Math.min(mail, 10));
    await makeOlder('6 minutes', id);
  }
});

test('a request that is stored while another process looks for due mails does not lead to a second mail', async () => {
  const { id, email } = await auth.person();
  await tokenFor(email);
  await untilSent();
  await stopSending();
  const store = createResetStore(async (operation, ...rest) => {
    if (operation === 'claim_mail') await forgot(email);
    return auth.database.query(operation, ...rest);
  });
  expect(await store.claim(30)).toBeUndefined();
  stopSending = auth.sendMails(server.port);
  await untilSent();
  expect(await auth.sql('SELECT FROM auth.password_reset WHERE user_id = $1', id)).toHaveLength(1);
});

test('an unknown email and a disabled user get the same reply as a user, and no mail', async () => {
  const [user, disabled] = [await auth.person(), await auth.person()];
  await auth.sql('UPDATE auth.user SET disabled = true WHERE id = $1', disabled.id);
  const equalized = auth.equalized();
  const emails = [user.email, disabled.email, 'unknown@example.com'];
  const replies = await Promise.all(emails.map((email) => forgot(email)));
  expect(replies[0]).toMatchObject({ status: 202 });
  for (const reply of replies) expect(visible(reply)).toEqual(visible(replies[0]!));
  expect(auth.equalized()).toBe(equalized + 3);
  await untilSent();
  expect(emails.map((email) => server.to(email).length)).toEqual([1, 0, 0]);
  const left = `SELECT FROM auth.password_reset WHERE user_id IS NULL OR user_id = $1`;
  expect(await auth.sql(left, disabled.id)).toEqual([]);
});

test('an email with a comma is one address', async () => {
  const email = 'ann,mallory@example.com';
  await auth.addUser(email, password);
  await forgot(email);
  await untilSent();
  expect(server.mails.at(-1)).toMatchObject({ to: ['"ann,mallory"@example.com'], hello: 'example.com' });
});

test('a user without a password gets a link, unless the user logs in at an identity provider', async () => {
  const [invited, linked] = [await auth.person(), await auth.person()];
  for (const { id } of [invited, linked]) await auth.stores.users.removePassword(id);
  await auth.stores.identities.link({ issuer: 'https://id.example', subject: 'x' }, linked.id);
  await auth.stores.users.setTemporaryPassword(linked.id, 'expired', -1);
  expect((await reset(await tokenFor(invited.email))).status).toBe(204);
  await forgot(linked.email);
  const mail = await until('a mail arrives', () => server.to(linked.email)[0]);
  expect(mail).toContain('Your account has no password.');
  expect(mail).not.toContain('token=');
});

test('rows are deleted after a day', async () => {
  await tokenFor((await auth.person()).email);
  await auth.sql(`UPDATE auth.password_reset SET created_at = now() - interval '25 hours'`);
  const kept = await auth.person();
  await tokenFor(kept.email).then(() => makeOlder('23 hours', kept.id));
  await retention(auth.database.query)['password resets']!();
  expect(await auth.sql('SELECT user_id::int AS id FROM auth.password_reset')).toEqual([{ id: kept.id }]);
});
