import { beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import { login as endpoint } from '@content-platform/contract';
import { useStarted } from '../../test/support/use-started.ts';
import { userCaller } from '../../test/support/user-caller.ts';
import { HttpError } from './http-error.ts';
import { createIdempotency, maxKeys, migrateIdempotency, type Idempotency } from './idempotency.ts';
import type { Logger } from './logger.ts';
import { openTestService } from './testing/open-test-service.ts';

const prepare = (url: string, logger: Logger) => migrateIdempotency({ url, schema: 'letters', logger });
const service = useStarted(() => openTestService('letters', prepare, 'idempotency'));
let idempotency: Idempotency;
beforeAll(() => void (idempotency = createIdempotency(service.database.query, 'letters')));
const sql = (text: string) => service.database.query('test', text);
beforeEach(() => sql('DELETE FROM letters.idempotency_key'));

const request = { endpoint, caller: userCaller(1), key: 'a', fingerprint: 'x' };
const done = { status: 201, body: { id: 1 }, headers: { ETag: '"1"' } };
const again = { status: 201, body: { id: 2 } };
const work = jest.fn(async () => done);
beforeEach(() => void work.mockClear());

test('a repeated request gets the same reply, and the work is done once', async () => {
  expect(await idempotency.once(request, work)).toEqual(done);
  expect(await idempotency.once(request, async () => again)).toEqual(done);
  expect(work).toHaveBeenCalledTimes(1);
});

test.each([
  ['another caller', { caller: userCaller(2) }],
  ['another key', { key: 'b' }],
  ['another endpoint', { endpoint: { ...endpoint, name: 'other' } }],
])('a request of %s is another request', async (_, difference) => {
  await idempotency.once(request, work);
  expect(await idempotency.once({ ...request, ...difference }, async () => again)).toEqual(again);
});

test.each(['', 'a'.repeat(256), 'ü', 'a\nb'])('the malformed key %j is a 422', async (key) => {
  const refused = idempotency.once({ ...request, key }, work);
  await expect(refused).rejects.toMatchObject({ status: 422, error: 'validation_failed' });
  expect(work).not.toHaveBeenCalled();
});

test('concurrent requests get 409, and one of them does the work', async () => {
  const end = Promise.withResolvers<typeof done>();
  const slow = jest.fn(() => end.promise);
  const all = Array.from({ length: 8 }, () =>
    idempotency.once(request, slow).catch((error: unknown) => error),
  );
  const inUse = { status: 409, error: 'idempotency_key_in_use', headers: { 'Retry-After': '1' } };
  expect(await Promise.race(all)).toMatchObject(inUse);
  end.resolve(done);
  const replies = await Promise.all(all);
  // Requests that arrived after the work was done also get the stored reply.
  const others = replies.filter((reply) => reply instanceof HttpError);
  expect(others.every(({ error }) => error === 'idempotency_key_in_use')).toBe(true);
  expect(replies).toContainEqual(done);
  expect(slow).toHaveBeenCalledTimes(1);
});

test('stores no error: a repetition, or another request with the key, does its work', async () => {
  const fail = async () => Promise.reject(new HttpError('letter_closed', 'The letter is closed.'));
  await expect(idempotency.once(request, fail)).rejects.toMatchObject({ error: 'letter_closed' });
  expect((await sql('SELECT FROM letters.idempotency_key')).rowCount).toBe(0);
  expect(await idempotency.once({ ...request, fingerprint: 'y' }, work)).toEqual(done);
});

test('replaces an error that an earlier release stored', async () => {
  await idempotency.once(request, work);
  await sql(
    `UPDATE letters.idempotency_key SET reply = '{"error":{"error":"letter_closed","message":"The letter is closed."}}'`,
  );
  expect(await idempotency.once(request, async () => again)).toEqual(again);
});

test('a caller with 1,000 keys in 24 hours gets 429 for a new one, and replies for the old ones', async () => {
  await idempotency.once(request, work);
  await sql(`INSERT INTO letters.idempotency_key
             SELECT caller, endpoint, n::text, fingerprint, run, held_until, reply, created_at
             FROM letters.idempotency_key, generate_series(2, ${maxKeys}) AS n`);
  const more = idempotency.once({ ...request, key: 'more' }, work);
  await expect(more).rejects.toMatchObject({
    error: 'rate_limited',
    headers: { 'Retry-After': expect.any(String) },
  });
  expect(await idempotency.once(request, work)).toEqual(done);
  expect(work).toHaveBeenCalledTimes(1);
  expect(await idempotency.once({ ...request, caller: userCaller(2) }, async () => again)).toEqual(again);
  await sql(`UPDATE letters.idempotency_key SET created_at = now() - interval '25 hours' WHERE key = '7'`);
  expect(await idempotency.once({ ...request, key: 'more' }, async () => again)).toEqual(again);
});

test('a repetition does the work of a process that died, once the key is no longer held', async () => {
  const left = Promise.withResolvers<typeof again>();
  const abandoned = idempotency.once(request, () => left.promise);
  while ((await sql('SELECT FROM letters.idempotency_key')).rowCount === 0);
  await expect(idempotency.once(request, work)).rejects.toMatchObject({ status: 409 });
  // The longest request, an upload, takes 75 s.
  await sql(`UPDATE letters.idempotency_key SET held_until = held_until - interval '75 s'`);
  await expect(idempotency.once(request, work)).rejects.toMatchObject({ status: 409 });
  await sql(`UPDATE letters.idempotency_key SET held_until = now() - interval '1 s'`);
  const other = idempotency.once({ ...request, fingerprint: 'y' }, work);
  await expect(other).rejects.toMatchObject({ error: 'idempotency_key_reused' });
  expect(await idempotency.once(request, work)).toEqual(done);
  // The first request was only slow: its reply does not replace the stored reply.
  left.resolve(again);
  await abandoned;
  expect(await idempotency.once(request, work)).toEqual(done);
});

test('after 24 hours the key is free and its row is deleted', async () => {
  const age = (s: number) => sql(`UPDATE letters.idempotency_key SET created_at = now() - interval '${s} s'`);
  await idempotency.once(request, work);
  await age(86_340).then(() => idempotency.deleteExpired());
  expect(await idempotency.once(request, async () => again)).toEqual(done);
  await age(86_401);
  expect(await idempotency.once({ ...request, fingerprint: 'y' }, async () => again)).toEqual(again);
  await age(86_401).then(() => idempotency.deleteExpired());
  expect((await sql('SELECT FROM letters.idempotency_key')).rowCount).toBe(0);
});

test("erases a user's keys, and replies of others with an object of the user", async () => {
  const reply = (user_id: number) => async () => ({ status: 200, body: { id: 1, user_id } });
  const keys: Record<string, [caller: number, owner: number]> = { own: [1, 1], staff: [2, 1], other: [2, 2] };
  for (const [key, [caller, owner]] of Object.entries(keys))
    await idempotency.once({ ...request, caller: userCaller(caller), key }, reply(owner));
  await idempotency.erase([1, 11]);
  const { rows } = await sql('SELECT key FROM letters.idempotency_key');
  expect(rows).toEqual([{ key: 'other' }]);
});
