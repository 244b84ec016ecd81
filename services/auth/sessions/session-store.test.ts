import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { holdOpen, untilBlocked } from '../../../test/support/locks.ts';
import { startAuth, type TestAuth } from '../testing.ts';
import { randomToken, sha256 } from './opaque-token.ts';
import { createSessionStore } from './session-store.ts';

let auth: TestAuth;
let userId: number;
beforeAll(async () => {
  auth = await startAuth();
  const person = { email: 'ann@example.com', name: 'Ann', passwordHash: null, roles: ['user' as const] };
  userId = (await auth.accounts.users.create(person))!.id;
});
afterAll(() => auth.stop());

/** A new session, and the hashes of three tokens; the first is its refresh token. */
async function open() {
  const [first, second, third] = [randomToken(), randomToken(), randomToken()].map(sha256);
  const session = { userId, device: 'x', address: '::1', mustChangePassword: false };
  const id = await auth.database.transaction((query) => createSessionStore(query).open(session, first!));
  return { id, first: first!, second: second!, third: third! };
}

const store = () => createSessionStore(auth.database.query);
const live = { state: 'valid', replaced: false };
const replaced = { state: 'valid', replaced: true };

test('each token of a chain is as old as its own replacement', async () => {
  const { id, first, second, third } = await open();
  await store().replace(id, first, second);
  await store().replace(id, second, third);
  expect(await store().find(first)).toEqual({
    sessionId: id,
    userId,
    mustChangePassword: false,
    ...replaced,
  });
  const age = `UPDATE auth.refresh_token SET replaced_at = now() - make_interval(secs => $2) WHERE hash = $1`;
  await auth.database.query('test', age, [first, 9]);
  await auth.database.query('test', age, [second, 11]);
  expect(await store().find(first)).toMatchObject(replaced);
  expect(await store().find(second)).toMatchObject({ state: 'reused' });
  expect(await store().find(third)).toMatchObject(live);
  expect(await store().find(sha256('another'))).toBeUndefined();
});

test('who presents one waits for others with a token of the session, and sees what they did', async () => {
  const { id, first, second, third } = await open();
  const release = await holdOpen(auth.database, async (query) => {
    const ours = createSessionStore(query);
    expect(await ours.present(first)).toMatchObject(live);
    await ours.replace(id, first, second);
    await ours.replace(id, second, third);
  });
  const presented = auth.database.transaction(async (query) => {
    const theirs = createSessionStore(query);
    return [await theirs.present(first), await theirs.find(second), await theirs.find(third)];
  });
  await untilBlocked(auth.database);
  await release();
  expect(await presented).toMatchObject([replaced, replaced, live]);
});
