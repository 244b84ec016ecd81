import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHmac } from 'node:crypto';
import { listSessions, login, logout, me, token as tokenEndpoint } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { until } from '../../../test/support/wait.ts';
import { loadSecret } from '../keys/secret-store.ts';
import { holdOpen, untilBlocked } from '../../../test/support/locks.ts';
import { decode, keySecret, startAuth, type TestAuth } from '../testing.ts';
import { createUserStore } from '../user-store.ts';
import { sha256 } from './opaque-token.ts';
import { createSessionStore } from './session-store.ts';

const password = 'a-password-to-keep';
let auth: TestAuth;
let people = 0;

beforeAll(async () => {
  auth = await startAuth();
});
afterAll(() => auth.stop());

const sql = <Row extends object>(text: string, values: unknown[] = []) =>
  auth.database.query<Row & Record<string, unknown>>('test', text, values).then(({ rows }) => rows);

/** A login of somebody new. */
async function logIn(headers: Record<string, string> = {}) {
  const email = `person-${(people += 1)}@example.com`;
  await auth.addUser(email, password);
  const answer = await call(auth.origin, login, { body: { email, password }, headers });
  if (answer.error) throw new Error(answer.error.message);
  const { token, refresh_token: refreshToken, user } = answer.body;
  return { token, refreshToken, user, sessionId: Number(decode(token).claims['sid']) };
}

async function refresh(refreshToken: string) {
  const body = { grant_type: 'refresh_token', refresh_token: refreshToken };
  const { status, body: pair, error } = await call(auth.origin, tokenEndpoint, { body });
  const reason = error?.details?.find(({ path }) => path === 'reason')?.message;
  return { status, error: error?.error, reason, token: pair?.access_token, next: pair?.refresh_token };
}
const refused = (reason: string) => ({ status: 400, error: 'invalid_grant', reason });

/** As if so much time had passed since the token was given out and replaced. */
const age = (sessionId: number, interval: string) =>
  sql(
    `UPDATE auth.refresh_token SET created_at = created_at - $2::interval, replaced_at = replaced_at - $2::interval
     WHERE session_id = $1`,
    [sessionId, interval],
  );

test('a refresh token is replaced at each use, and the access token is of the same session', async () => {
  const { refreshToken, sessionId, user } = await logIn();
  expect(refreshToken).toMatch(/^[\w-]{43}$/);
  const first = await refresh(refreshToken);
  const second = await refresh(first.next!);
  expect(new Set([refreshToken, first.next, second.next]).size).toBe(3);
  expect(decode(second.token!).claims).toMatchObject({ sub: String(user.id), sid: String(sessionId) });
  expect((await call(auth.origin, me, { token: second.token })).body).toMatchObject({ id: user.id });
});

test('the database knows no token, only hashes', async () => {
  const { refreshToken, sessionId } = await logIn();
  const { next } = await refresh(refreshToken);
  const rows = await sql<{ row: string }>(
    'SELECT refresh_token::text AS row FROM auth.refresh_token WHERE session_id = $1',
    [sessionId],
  );
  expect(rows).toHaveLength(2);
  for (const given of [refreshToken, next!]) {
    for (const encoding of ['utf8', 'base64url'] as const) {
      const hex = Buffer.from(given, encoding).toString('hex');
      for (const { row } of rows) expect(row).not.toContain(hex);
    }
  }
});

test('an answer that was lost can be had again for 10 s: everyone stays on one chain', async () => {
  const { refreshToken } = await logIn();
  const [first, again] = [await refresh(refreshToken), await refresh(refreshToken)];
  expect(again.next).toBe(first.next);
});

describe('a token that comes again within 10 s, when its successor was used, too,', () => {
  /** The tokens of a new session, each of them used but for the last. */
  async function chain(steps: number) {
    const { refreshToken, sessionId } = await logIn();
    const all = [refreshToken];
    for (let step = 0; step < steps; step += 1) all.push((await refresh(all.at(-1)!)).next!);
    return { all, newest: all.at(-1)!, sessionId };
  }

  test('leads to the end of the chain, which is good for longer: nobody is taken for a thief', async () => {
    const { all, newest, sessionId } = await chain(4);
    for (const token of all.slice(0, -1)) expect((await refresh(token)).next).toBe(newest);
    await age(sessionId, '11 seconds');
    const { status, next } = await refresh(newest);
    expect(status).toBe(200);
    expect(all).not.toContain(next);
    expect(await sql('SELECT FROM auth.refresh_token WHERE session_id = $1', [sessionId])).toHaveLength(6);
  });

  test('does so also when that happens while it waits for its turn', async () => {
    const { refreshToken, sessionId } = await logIn();
    const secret = await loadSecret(auth.stores.secrets, 'refresh_token', keySecret);
    const successorOf = (token: string) => createHmac('sha256', secret).update(token).digest('base64url');
    const second = successorOf(refreshToken);
    const third = successorOf(second);
    const release = await holdOpen(auth.database, async (query) => {
      const store = createSessionStore(query);
      await query('lock', 'SELECT FROM auth.session WHERE id = $1 FOR UPDATE', [sessionId]);
      await store.replace(sessionId, sha256(refreshToken), sha256(second));
      await store.replace(sessionId, sha256(second), sha256(third));
    });
    const answer = refresh(refreshToken);
    await untilBlocked(auth.database);
    await release();
    expect((await answer).next).toBe(third);
  });

  test.each([0, 1, 2])('ends the session when step %i was no moment ago', async (step) => {
    const { all, newest, sessionId } = await chain(3);
    const old = `UPDATE auth.refresh_token SET replaced_at = replaced_at - interval '11 s' WHERE hash = $1`;
    await sql(old, [sha256(all[step]!)]);
    expect(await refresh(all[0]!)).toMatchObject(refused('reused'));
    expect(await refresh(newest)).toMatchObject(refused('revoked'));
    const text = `SELECT FROM auth.audit WHERE event = 'refresh_token_reused' AND details ->> 'session' = $1`;
    expect(await sql(text, [String(sessionId)])).toHaveLength(1);
  });
});

describe('a token that was replaced over a day ago', () => {
  /** A session whose token was replaced `steps` times, and its tokens, the newest last. */
  async function oldChain(steps: number) {
    const { refreshToken, sessionId } = await logIn();
    const secret = await loadSecret(auth.stores.secrets, 'refresh_token', keySecret);
    const all = [refreshToken];
    for (let step = 0; step < steps; step += 1)
      all.push(createHmac('sha256', secret).update(all.at(-1)!).digest('base64url'));
    await sql(
      `INSERT INTO auth.refresh_token (hash, session_id) SELECT hash, $2 FROM unnest($1::bytea[]) AS hash
       ON CONFLICT DO NOTHING`,
      [all.map(sha256), sessionId],
    );
    await sql('UPDATE auth.refresh_token SET replaced_at = now() WHERE session_id = $1 AND hash <> $2', [
      sessionId,
      sha256(all.at(-1)!),
    ]);
    await age(sessionId, '25 hours');
    await auth.stores.sessions.deleteExpired();
    const rows = await sql<{ hash: Buffer }>('SELECT hash FROM auth.refresh_token WHERE session_id = $1', [
      sessionId,
    ]);
    const left = new Set(rows.map(({ hash }) => hash.toString('hex')));
    return { all, sessionId, isLeft: (token: string) => left.has(sha256(token).toString('hex')), left };
  }

  test('is deleted, but for a few; the newest is still good', async () => {
    const { all, isLeft, left } = await oldChain(200);
    expect(left.size).toBeLessThan(50);
    expect(isLeft(all.at(-1)!)).toBe(true);
    expect((await refresh(all.at(-1)!)).status).toBe(200);
  });

  test.each([20, 600])('still ends the session when it comes again, of %i', async (steps) => {
    const { all, isLeft, sessionId } = await oldChain(steps);
    const deleted = all.find((token) => !isLeft(token))!;
    expect(await refresh(deleted)).toMatchObject(refused('reused'));
    expect(await refresh(all.at(-1)!)).toMatchObject(refused('revoked'));
    expect(await refresh(deleted)).toMatchObject(refused('revoked'));
    const text = `SELECT FROM auth.audit WHERE event = 'refresh_token_reused' AND details ->> 'session' = $1`;
    expect(await sql(text, [String(sessionId)])).toHaveLength(1);
  });
});

test('a refresh and the deletion of its user wait for each other in one order only', async () => {
  const { refreshToken, user } = await logIn();
  const { promise: refreshing } = await auth.database.transaction(async (query) => {
    const users = createUserStore(query);
    await users.lock(user.id);
    await createSessionStore(query).endAll(user.id);
    const promise = refresh(refreshToken);
    await untilBlocked(auth.database);
    await users.delete(user.id);
    return { promise };
  });
  expect(await refreshing).toMatchObject(refused('unknown'));
});

test('50 refreshes at once with one token: one chain', async () => {
  const { refreshToken, sessionId } = await logIn();
  const answers = await Promise.all(Array.from({ length: 50 }, () => refresh(refreshToken)));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect(new Set(answers.map(({ next }) => next)).size).toBe(1);
  const text = 'SELECT hash FROM auth.refresh_token WHERE session_id = $1';
  expect(await sql(text, [sessionId])).toHaveLength(2);
});

test('a replaced token that comes after that ends the session, and is an audit row', async () => {
  const { refreshToken, sessionId, user, token } = await logIn();
  const { next } = await refresh(refreshToken);
  await age(sessionId, '11 seconds');
  expect(await refresh(refreshToken)).toMatchObject(refused('reused'));
  expect(await refresh(next!)).toMatchObject(refused('revoked'));
  expect(await refresh(refreshToken)).toMatchObject(refused('revoked'));
  const text = `SELECT event, details FROM auth.audit WHERE user_id = $1 AND event = 'refresh_token_reused'`;
  expect(await sql(text, [user.id])).toMatchObject([{ details: { session: sessionId } }]);
  await until('the access token is refused', async () => {
    const { error } = await call(auth.origin, me, { token });
    return error?.error === 'invalid_token';
  });
});

test('a token that is not used for 30 days has expired, its session after 90 in any case', async () => {
  const idle = await logIn();
  await age(idle.sessionId, '29 days 23 hours');
  const renewed = await refresh(idle.refreshToken);
  expect(renewed.status).toBe(200);
  await age(idle.sessionId, '30 days 1 hour');
  expect(await refresh(renewed.next!)).toMatchObject(refused('expired'));
  const old = await logIn();
  const { days } = (
    await sql<{ days: number }>(
      `SELECT extract(day FROM ends_at - created_at)::int AS days FROM auth.session WHERE id = $1`,
      [old.sessionId],
    )
  )[0]!;
  expect(days).toBe(90);
  await sql(`UPDATE auth.session SET ends_at = now() WHERE id = $1`, [old.sessionId]);
  expect(await refresh(old.refreshToken)).toMatchObject(refused('expired'));
});

test.each(['', 'x', 'A'.repeat(43), `${'A'.repeat(42)}\u00e4`, 'A'.repeat(200)])(
  '%j is no token of ours',
  async (token) => {
    const { status, reason } = await refresh(token);
    expect([status, reason]).toEqual([400, token === '' ? undefined : 'unknown']);
  },
);

test('after a logout nothing of the session is taken, and other sessions go on', async () => {
  const { token, refreshToken, user } = await logIn();
  const other = await call(auth.origin, login, { body: { email: user.email, password } });
  expect((await call(auth.origin, logout, { token })).status).toBe(204);
  expect(await refresh(refreshToken)).toMatchObject(refused('revoked'));
  await until('the access token is refused', async () => {
    const { error } = await call(auth.origin, me, { token });
    return error?.error === 'invalid_token';
  });
  expect((await call(auth.origin, me, { token: other.body!.token })).status).toBe(200);
  expect((await refresh(other.body!.refresh_token)).status).toBe(200);
});

test('a session has a device, an address, and says which one is asking', async () => {
  const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
  const { token, user, sessionId } = await logIn({ 'User-Agent': firefox, 'X-Forwarded-For': '2001:db8::7' });
  const headers = { 'User-Agent': 'curl/8.5.0' };
  await call(auth.origin, login, { body: { email: user.email, password }, headers });
  const { items } = (await call(auth.origin, listSessions, { token })).body!;
  expect(items).toMatchObject([
    { device: 'curl/8.5.0', address: '127.0.0.1', current: false },
    { id: sessionId, device: 'Firefox on Linux', address: '2001:db8::7', current: true },
  ]);
  const page = await call(auth.origin, listSessions, { token, query: { limit: 1 } });
  const cursor = page.body!.next_cursor!;
  const rest = await call(auth.origin, listSessions, { token, query: { limit: 1, cursor } });
  expect(rest.body).toMatchObject({ items: [{ id: sessionId }], next_cursor: null });
});

test('more than 100 sessions: the one unused for longest ends', async () => {
  const { user, refreshToken } = await logIn();
  await auth.database.transaction(async (query) => {
    for (let n = 0; n < 100; n += 1) {
      const session = { userId: user.id, device: '', address: '::1', mustChangePassword: false };
      await createSessionStore(query).open(session, Buffer.from(`${user.id} ${n}`));
    }
  });
  expect(await refresh(refreshToken)).toMatchObject(refused('revoked'));
  const text = 'SELECT id FROM auth.session WHERE user_id = $1 AND ended_at IS NULL';
  expect(await sql(text, [user.id])).toHaveLength(100);
});

test('a login whose user is disabled while the password is checked opens no session', async () => {
  const { user } = await logIn();
  const { promise: loggingIn } = await auth.database.transaction(async (query) => {
    await query('disable', 'UPDATE auth.user SET disabled = true WHERE id = $1', [user.id]);
    const promise = call(auth.origin, login, { body: { email: user.email, password } });
    await until('the login waits', async () => {
      const text = `SELECT FROM pg_stat_activity
                    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR SHARE'`;
      return (await sql(text)).length > 0;
    });
    return { promise };
  });
  expect((await loggingIn).error?.error).toBe('invalid_credentials');
});
