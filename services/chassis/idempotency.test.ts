import { afterAll, beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import { login as endpoint } from '@content-platform/contract';
import { createTestDatabase, type TestDatabase } from '../../test/support/test-database.ts';
import { HttpError } from './http-error.ts';
import { createIdempotency, migrateIdempotency, type Idempotency } from './idempotency.ts';
import { createLogger } from './logger.ts';
import { createMetrics } from './metrics.ts';
import { createDatabase, type Database } from './postgres.ts';
import { createSlowLog } from './slow-log.ts';
import type { Caller } from './tokens.ts';

let own: TestDatabase;
let database: Database;
let idempotency: Idempotency;
const logger = createLogger('auth', 'error');
beforeAll(async () => {
  own = await createTestDatabase();
  const { url } = own;
  await migrateIdempotency({ url, schema: 'letters', logger });
  const metrics = createMetrics('auth');
  const slowLog = createSlowLog(undefined, metrics, logger);
  database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs: 60_000 });
  idempotency = createIdempotency(database.query, 'letters');
});
afterAll(async () => {
  await database.close();
  await own.drop();
});
const sql = (text: string) => database.query('test', text);
beforeEach(() => sql('DELETE FROM letters.idempotency_key'));

const person = (id: number): Caller => ({
  kind: 'user',
  id,
  sessionId: '1',
  mustChangePassword: false,
  scopes: new Set(),
});
const request = { endpoint, caller: person(1), key: 'a', fingerprint: 'x' };
const done = { status: 201, body: { id: 1 }, headers: { ETag: '"1"' } };
const again = { status: 201, body: { id: 2 } };
const work = jest.fn(async () => done);
beforeEach(() => void work.mockClear());

test('the same request again: the same reply, done once', async () => {
  expect(await idempotency.once(request, work)).toEqual(done);
  expect(await idempotency.once(request, async () => again)).toEqual(done);
  expect(work).toHaveBeenCalledTimes(1);
});

test('without a key it is done each time', async () => {
  const unnamed = { ...request, key: undefined };
  await idempotency.once(unnamed, work);
  await idempotency.once(unnamed, work);
  expect(work).toHaveBeenCalledTimes(2);
});

test.each([
  ['another person', { caller: person(2) }],
  ['another key', { key: 'b' }],
  ['another endpoint', { endpoint: { ...endpoint, name: 'other' } }],
])('%s with it: another request', async (_, difference) => {
  await idempotency.once(request, work);
  expect(await idempotency.once({ ...request, ...difference }, async () => again)).toEqual(again);
});

test('the key with another request: 422, and nothing is done', async () => {
  await idempotency.once(request, work);
  const other = idempotency.once({ ...request, fingerprint: 'y' }, work);
  await expect(other).rejects.toMatchObject({ status: 422, error: 'idempotency_key_reused' });
  expect(work).toHaveBeenCalledTimes(1);
});

test.each(['', 'a'.repeat(256), 'ü', 'a\nb'])('the key %j is malformed: 422', async (key) => {
  const refused = idempotency.once({ ...request, key }, work);
  await expect(refused).rejects.toMatchObject({ status: 422, error: 'validation_failed' });
  expect(work).not.toHaveBeenCalled();
});

test('while the first is under way: 409; of many at once one is done', async () => {
  const end = Promise.withResolvers<typeof done>();
  const slow = jest.fn(() => end.promise);
  const all = Array.from({ length: 8 }, () =>
    idempotency.once(request, slow).catch((error: unknown) => error),
  );
  const busy = all.map((one) =>
    Promise.race([one, new Promise((resolve) => setTimeout(resolve, 60_000).unref())]),
  );
  const first = await Promise.any(busy);
  expect(first).toMatchObject({
    status: 409,
    error: 'idempotency_key_in_use',
    headers: { 'Retry-After': '1' },
  });
  end.resolve(done);
  const replies = await Promise.all(all);
  // Those who came when it was done have its reply, too.
  const others = replies.filter((reply) => reply instanceof HttpError);
  expect(others.every(({ error }) => error === 'idempotency_key_in_use')).toBe(true);
  expect(replies).toContainEqual(done);
  expect(slow).toHaveBeenCalledTimes(1);
});

test("an error of the client's comes back as it was", async () => {
  const details = [{ path: 'state', message: 'sent' }];
  const fail = async () => Promise.reject(new HttpError(409, 'letter_closed', 'Too late.', details));
  await expect(idempotency.once(request, fail)).rejects.toMatchObject({ status: 409 });
  const replayed = idempotency.once(request, work);
  await expect(replayed).rejects.toMatchObject({
    status: 409,
    error: 'letter_closed',
    message: 'Too late.',
    details,
  });
  await expect(replayed).rejects.toBeInstanceOf(HttpError);
  expect(work).not.toHaveBeenCalled();
});

test('an error of ours is not kept: the next request does it', async () => {
  await expect(idempotency.once(request, () => Promise.reject(new Error('broken')))).rejects.toThrow(
    'broken',
  );
  expect(await idempotency.once(request, work)).toEqual(done);
});

test('what a process has left lying is taken up after a minute, and only by the same request', async () => {
  const left = Promise.withResolvers<typeof again>();
  const abandoned = idempotency.once(request, () => left.promise);
  while ((await sql('SELECT FROM letters.idempotency_key')).rowCount === 0);
  await expect(idempotency.once(request, work)).rejects.toMatchObject({ status: 409 });
  await sql(`UPDATE letters.idempotency_key SET held_until = now() - interval '1 s'`);
  const other = idempotency.once({ ...request, fingerprint: 'y' }, work);
  await expect(other).rejects.toMatchObject({ error: 'idempotency_key_reused' });
  expect(await idempotency.once(request, work)).toEqual(done);
  // The first one was only slow: what it says now does not take the place of what was answered.
  left.resolve(again);
  await abandoned;
  expect(await idempotency.once(request, work)).toEqual(done);
});

test('after 24 hours the key is free, and its row goes', async () => {
  await idempotency.once(request, work);
  await sql(`UPDATE letters.idempotency_key SET created_at = now() - interval '24 hours 1 second'`);
  expect(await idempotency.once({ ...request, fingerprint: 'y' }, async () => again)).toEqual(again);
  await idempotency.forget();
  expect((await sql('SELECT FROM letters.idempotency_key')).rowCount).toBe(1);
  await sql(`UPDATE letters.idempotency_key SET created_at = now() - interval '24 hours 1 second'`);
  await idempotency.forget();
  expect((await sql('SELECT FROM letters.idempotency_key')).rowCount).toBe(0);
});
