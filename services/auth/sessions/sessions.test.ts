import { describe, expect, test } from '@jest/globals';
import { createHmac } from 'node:crypto';
import type { Database } from '@content-platform/chassis';
import { until } from '../../../test/support/wait.ts';
import { untilBlocked } from '../../../test/support/locks.ts';
import { reasonOf, useAuth } from '../testing/start-auth.ts';
import { createUserStore } from '../user-store.ts';
import { sha256 } from './opaque-token.ts';
import { createSessionStore } from './session-store.ts';
import { createSessions } from './sessions.ts';

const auth = useAuth();

const reasonFor = async (refreshToken: string) => reasonOf(await auth.refresh(refreshToken));
async function successorOf(refreshToken: string): Promise<string> {
  return (await auth.refresh(refreshToken)).body!.refresh_token!;
}
/** The next refresh token, derived as the service does. */
const derived = (token: string) => createHmac('sha256', auth.refreshSecret).update(token).digest('base64url');

const older = `UPDATE auth.refresh_token
  SET created_at = created_at - $2::interval, replaced_at = replaced_at - $2::interval WHERE session_id = $1`;
/** Simulates that this much time has passed since the token was issued and replaced. */
const age = (sessionId: number, interval: string) => auth.sql(older, sessionId, interval);
const hashesOf = (sessionId: number) =>
  auth.sql<{ hash: Buffer }>('SELECT hash FROM auth.refresh_token WHERE session_id = $1', sessionId);
const reused = `SELECT FROM auth.audit WHERE event = 'refresh_token_reused' AND details ->> 'session' = $1`;
const reuses = (sessionId: number) => auth.sql(reused, String(sessionId));

test('stores hashes of tokens only', async () => {
  const { refreshToken, sessionId } = await auth.person();
  const next = await successorOf(refreshToken);
  const hashes = await hashesOf(sessionId);
  expect(hashes).toEqual(expect.arrayContaining([{ hash: sha256(refreshToken) }, { hash: sha256(next) }]));
  expect(hashes).toHaveLength(2);
});

describe('a token that is repeated within 10 s', () => {
  /** The tokens of a new session. Each except the last was used. */
  async function chain(steps: number) {
    const { refreshToken, sessionId, token } = await auth.person();
    const all = [refreshToken];
    for (let step = 0; step < steps; step += 1) all.push(await successorOf(all.at(-1)!));
    return { all, newest: all.at(-1)!, sessionId, token };
  }

  test('leads to the valid end of the chain and does not count as theft', async () => {
    const { all, newest, sessionId } = await chain(4);
    for (const token of all.slice(0, -1)) expect(await successorOf(token)).toBe(newest);
    await age(sessionId, '11 seconds');
    expect(all).not.toContain(await successorOf(newest));
    expect(await hashesOf(sessionId)).toHaveLength(6);
  });

  test('does so even if its successor is used while it waits for the lock', async () => {
    const { refreshToken, sessionId } = await auth.person();
    const second = derived(refreshToken);
    const third = derived(second);
    const useSuccessor = async (query: Database['query']) => {
      const store = createSessionStore(query);
      await store.findAndLock(sha256(refreshToken));
      await store.replace(sessionId, sha256(refreshToken), sha256(second));
      await store.replace(sessionId, sha256(second), sha256(third));
    };
    expect(await auth.whileHeld(useSuccessor, () => successorOf(refreshToken))).toBe(third);
  });

  test('is not replaced by a refresh that takes too long', async () => {
    const { refreshToken, sessionId } = await auth.person();
    const sessions = createSessions(auth.stores, auth.tokens, auth.refreshSecret, () => {});
    const slow = sessions.refresh(refreshToken, '127.0.0.1', -Infinity);
    await expect(slow).rejects.toMatchObject({ status: 503 });
    expect(await hashesOf(sessionId)).toHaveLength(1);
  });

  test.each([0, 1, 2])('ends the session if step %i was replaced 11 s ago', async (step) => {
    const { all, newest, sessionId, token } = await chain(3);
    const old = `UPDATE auth.refresh_token SET replaced_at = replaced_at - interval '11 s' WHERE hash = $1`;
    await auth.sql(old, sha256(all[step]!));
    const metric = auth.metrics.registry.getSingleMetric('refresh_tokens_reused_total')!;
    const counted = async () => (await metric.get()).values[0]!.value;
    const before = await counted();
    expect(await reasonFor(all[0]!)).toBe('reused');
    expect(await counted()).toBe(before + 1);
    expect(await reasonFor(newest)).toBe('revoked');
    expect(await reuses(sessionId)).toHaveLength(1);
    await until('the access token is refused', () => auth.isRefused(token));
  });
});

describe('a token that was replaced over a day ago', () => {
  /** A session whose token was replaced `steps` times, and its tokens, the newest last. */
  async function oldChain(steps: number) {
    const { refreshToken, sessionId } = await auth.person();
    const all = [refreshToken];
    for (let step = 0; step < steps; step += 1) all.push(derived(all.at(-1)!));
    await auth.sql(
      `INSERT INTO auth.refresh_token (hash, session_id) SELECT hash, $2 FROM unnest($1::bytea[]) AS hash
       ON CONFLICT DO NOTHING`,
      all.map(sha256),
      sessionId,
    );
    const replace = 'UPDATE auth.refresh_token SET replaced_at = now() WHERE session_id = $1 AND hash <> $2';
    await auth.sql(replace, sessionId, sha256(all.at(-1)!));
    await age(sessionId, '25 hours');
    await auth.stores.sessions.deleteExpired();
    const left = new Set((await hashesOf(sessionId)).map(({ hash }) => hash.toString('hex')));
    return { all, sessionId, isLeft: (token: string) => left.has(sha256(token).toString('hex')), left };
  }

  test('is deleted in most cases; the newest token stays valid', async () => {
    const { all, left } = await oldChain(200);
    expect(left.size).toBeLessThan(50);
    expect((await auth.refresh(all.at(-1)!)).status).toBe(200);
  });

  test.each([20, 600])('still ends the session when it is repeated, in a chain of %i', async (steps) => {
    const { all, isLeft, sessionId } = await oldChain(steps);
    const deleted = all.find((token) => !isLeft(token))!;
    expect(await reasonFor(deleted)).toBe('reused');
    expect(await reasonFor(all.at(-1)!)).toBe('revoked');
    expect(await reasonFor(deleted)).toBe('revoked');
    expect(await reuses(sessionId)).toHaveLength(1);
  });
});

test('a refresh and the deletion of its user do not deadlock', async () => {
  const { refreshToken, id } = await auth.person();
  const { reason } = await auth.database.transaction(async (query) => {
    const users = createUserStore(query);
    await users.lock(id);
    await createSessionStore(query).endAll(id);
    const promise = reasonFor(refreshToken);
    await untilBlocked(auth.database);
    await users.delete(id);
    return { reason: promise };
  });
  expect(await reason).toBe('unknown');
});

test('50 concurrent refreshes with one token lead to one chain', async () => {
  const { refreshToken, sessionId } = await auth.person();
  const all = await Promise.all(Array.from({ length: 50 }, () => successorOf(refreshToken)));
  expect(new Set(all).size).toBe(1);
  expect(await hashesOf(sessionId)).toHaveLength(2);
});

test('a token expires after 30 days without use, its session after 90 days', async () => {
  const idle = await auth.person();
  await age(idle.sessionId, '29 days 23 hours');
  const renewed = await successorOf(idle.refreshToken);
  await age(idle.sessionId, '30 days 1 hour');
  expect(await reasonFor(renewed)).toBe('expired');
  const old = await auth.person();
  const lifetime =
    'SELECT round(extract(epoch FROM ends_at - created_at) / 86400)::int AS days FROM auth.session WHERE id = $1';
  expect(await auth.sql(lifetime, old.sessionId)).toEqual([{ days: 90 }]);
  await auth.sql('UPDATE auth.session SET ends_at = now() WHERE id = $1', old.sessionId);
  expect(await reasonFor(old.refreshToken)).toBe('expired');
});

test('the 101st session ends the least recently used one', async () => {
  const { id: userId, email, refreshToken, sessionId } = await auth.person();
  await auth.stores.transaction(async ({ sessions }) => {
    const session = { userId, device: '', address: '::1', mustChangePassword: false };
    for (let n = 0; n < 99; n += 1) await sessions.add(session, Buffer.from(`${userId} ${n}`));
  });
  // The oldest session is now used more recently than the 99 others.
  await auth.refresh(refreshToken);
  await auth.logIn(email);
  const live = await auth.stores.sessions.list(userId, undefined, 200);
  expect([live.length, live.at(-1)!.id]).toEqual([100, sessionId]);
});
