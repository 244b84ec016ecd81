import { afterEach, expect, test } from '@jest/globals';
import type { Database } from '@content-platform/chassis';
import { startHttpServer } from '../../../test/support/http-server.ts';
import { holdOpen, untilBlocked } from '../../../test/support/locks.ts';
import { useStarted } from '../../../test/support/use-started.ts';
import { useLetters } from '../testing/letters.ts';
import { createFindUser } from '../users.ts';

let authStatus: number | undefined;
/** Stands for auth's internal listener, which knows user 2. */
const auth = useStarted(() =>
  startHttpServer(({ url }, response) => {
    response.writeHead(authStatus ?? (url === '/users?id=2' ? 200 : 404)).end('{"id":2}');
  }),
);
const letters = useLetters({ findUser: (whom) => createFindUser(auth.origin, fetch)(whom) });
afterEach(async () => {
  authStatus = undefined;
  await letters.database.query('test', 'TRUNCATE letters.letter, letters.idempotency_key CASCADE');
});

const count = async () => (await letters.database.query('test', 'SELECT FROM letters.letter')).rowCount;
const key = { 'Idempotency-Key': 'a-key' };

test('refuses an unknown user, and accepts the same Idempotency-Key afterwards', async () => {
  const refused = await letters.create({ user_id: 3 }, key);
  expect(refused.error).toMatchObject({
    error: 'validation_failed',
    details: [{ path: 'body.user_id', message: 'User 3 was not found.' }],
  });
  expect(await count()).toBe(0);
  expect((await letters.create({}, key)).status).toBe(201);
});

test('returns 503 and stores nothing while auth is unavailable', async () => {
  authStatus = 503;
  expect((await letters.create({}, key)).error?.error).toBe('service_unavailable');
  expect(await count()).toBe(0);
  authStatus = undefined;
  expect((await letters.create({}, key)).status).toBe(201);
});

test('repeats the reply for the same key, even if auth is unavailable; another letter needs another key', async () => {
  const first = await letters.create({}, key);
  authStatus = 503;
  const again = await letters.create({}, key);
  expect(again).toMatchObject({ status: 201, body: first.body });
  expect(again.headers.get('etag')).toBe(first.headers.get('etag'));
  expect((await letters.create({ title: 'Another' }, key)).error?.error).toBe('idempotency_key_reused');
  expect(await count()).toBe(1);
});

test('creates no second letter if the connection breaks during the commit of the first', async () => {
  letters.breakAfterNextCommit();
  expect((await letters.create({}, key)).status).toBe(500);
  expect((await letters.create({}, key)).status).toBe(201);
  expect(await count()).toBe(1);
});

test('creates no letter if another request has claimed the key of a request that takes too long', async () => {
  const { database } = letters;
  const release = await holdOpen<Database['query']>(database, (query) =>
    query('test', 'LOCK TABLE letters.letter IN SHARE ROW EXCLUSIVE MODE'),
  );
  const slow = letters.create({}, key);
  await untilBlocked(database);
  await database.query('test', 'UPDATE letters.idempotency_key SET run = gen_random_uuid()');
  await release();
  expect((await slow).error?.error).toBe('idempotency_key_in_use');
  expect(await count()).toBe(0);
});
