import { afterEach, expect, jest, test } from '@jest/globals';
import { pauseAfter } from '../src/retry.ts';
import { createClient, PlatformError } from '../src/index.ts';
import { failure, type FakeReply, ok } from '../../../test/support/fake-server.ts';
import { until, within } from '../../../test/support/wait.ts';
import { atOnce, busy, type Fake, never, startFake } from './fake-platform.ts';

let fake: Fake;
afterEach(() => fake?.server.close());

test('puts the input into path, query, body or form, and refuses an id that names another path', async () => {
  const timers = jest.spyOn(globalThis, 'setTimeout');
  const paths = ['/api/letters', '/api/content/webform/a%2Fb', '/api/admin/users/7', '/api/upload'];
  fake = await startFake(Object.fromEntries(paths.map((path) => [path, [ok({ items: [] })]])));
  await fake.client.request('listLetters', { state: 'open', limit: 2, cursor: undefined });
  await fake.client.read('webform', 'a/b');
  await fake.client.request('updateUser', { id: 7, name: 'N' }, { headers: { 'X-Request-Id': 'mine' } });
  await fake.client.upload(new Response('%PDF-1').body!, { name: 'a.pdf' });
  for (const id of ['', '.', '..'])
    await expect(fake.client.request('deleteSession', { id })).rejects.toThrow(TypeError);
  expect(fake.seen).toMatchObject([
    { path: '/api/letters?state=open&limit=2' },
    { path: paths[1] },
    { body: '{"name":"N"}', headers: { 'x-request-id': 'mine', 'content-type': 'application/json' } },
    { body: expect.stringMatching(/name="file"; filename="a\.pdf"[^]*%PDF-1/) },
  ]);
  await fake.client.request('readVariant', { id: 1, variant: 'thumb' }).catch(() => undefined);
  expect(timers.mock.calls.filter(([, ms]) => ms === 260_000)).toHaveLength(3);
  await fake.client.request('me', {}, { timeoutMs: Infinity }).catch(() => undefined);
  expect(timers.mock.calls.filter(([, ms]) => ms === 2 ** 31 - 1)).toHaveLength(1);
  timers.mockRestore();
});

test('sends an empty object where the platform requires a body', async () => {
  fake = await startFake({ '/api/admin/failed-jobs/retry': [ok({})] });
  await fake.client.request('retryFailedJobs');
  expect(fake.seen[0]).toMatchObject({ body: '{}', headers: { 'content-type': 'application/json' } });
});

test('calls the fetch that is global at the time of the call', async () => {
  fake = await startFake({});
  jest.spyOn(globalThis, 'fetch').mockResolvedValueOnce(Response.json({ id: 2 }));
  expect(await fake.client.request('me')).toEqual({ id: 2 });
});

test('reads a duplicate id once', async () => {
  fake = await startFake({ '/api/content/webform': [ok({ items: [] })] });
  await fake.client.readMany('webform', [...Array.from({ length: 100 }, (_, index) => index + 1), 1]);
  expect(fake.seen).toHaveLength(1);
  const ids = Array.from({ length: 101 }, (_, index) => index + 1);
  await fake.client.readMany('webform', ids);
  expect(fake.seen.slice(1).map(({ path }) => path)).toEqual([
    expect.stringMatching(/100$/),
    expect.stringMatching(/ids=101$/),
  ]);
});

test('reads records that are too large for one reply in two', async () => {
  const page = (...ids: number[]) => ok({ items: ids.map((id) => ({ id })), missing: [] });
  fake = await startFake({
    '/api/content/webform': [
      failure(422, 'validation_failed'),
      page(1, 2),
      page(3),
      failure(422, 'validation_failed'),
    ],
  });
  const { items } = await fake.client.readMany('webform', [1, 2, 3]);
  expect(items.map(({ id }) => id)).toEqual([1, 2, 3]);
  await expect(fake.client.readMany('webform', [1])).rejects.toMatchObject({ status: 422 });
  expect(fake.seen).toHaveLength(4);
});

test('refuses an invalid URL of the platform, and an operation that does not exist', async () => {
  expect(() => createClient({ url: 'nonsense' })).toThrow('Invalid URL');
  fake = await startFake({});
  const call = fake.client.request('toString' as 'readLetter', { id: 1 });
  await expect(call).rejects.toThrow(new TypeError('The platform has no operation toString.'));
});

test.each<[string, FakeReply]>([
  ['429', failure(429, 'rate_limited', atOnce)],
  ['a 502 of a proxy', { status: 502, body: '<html>', headers: { 'Content-Type': 'text/html', ...atOnce } }],
  ['a lost connection', 'lost'],
])('repeats a read after %s', async (_, reply) => {
  fake = await startFake({ '/api/content/webform/1': [reply, ok({ id: 1 })] });
  expect(await fake.client.read('webform', 1)).toEqual({ id: 1 });
});

test('repeats an upload with the same Idempotency-Key, and another upload has another key', async () => {
  const inUse = failure(409, 'idempotency_key_in_use', atOnce);
  fake = await startFake({ '/api/upload': [busy, inUse, ok({ id: 1 })] });
  const file = new Blob(['%PDF-']);
  expect(await fake.client.upload(file)).toEqual({ id: 1 });
  await fake.client.upload(file);
  await fake.client.upload(file, { headers: { 'idempotency-key': 'mine' } });
  const keys = fake.seen.map(({ headers }) => headers['idempotency-key']);
  expect(keys).toEqual([keys[0], keys[0], keys[0], keys[3], 'mine']);
  expect(keys[3]).not.toBe(keys[0]);
});

test.each([
  ['a change without an Idempotency-Key', 'deleteSessions', 1, 503, atOnce],
  ['a read more than three times', 'me', 4, 503, atOnce],
  ['a read that has to wait for an hour', 'me', 1, 503, { 'Retry-After': '3600' }],
  ['a read that was refused', 'me', 1, 403, {}],
] as const)('does not repeat %s', async (_, name, requests, status, headers) => {
  const reply = failure(status, 'overloaded', headers);
  fake = await startFake({ '/api/me': [reply], '/api/sessions': [reply] });
  const error = { code: 'overloaded', status, requestId: 'R', message: 'M' };
  await expect(fake.client.request(name)).rejects.toMatchObject(error);
  expect(fake.seen).toHaveLength(requests);
});

test('waits for Retry-After, otherwise longer after each failure and at most 30 s', () => {
  const pause = (failures: number, retryAfter?: number) =>
    pauseAfter(new PlatformError({ code: 'overloaded', message: '', retryAfter }), failures);
  expect(Math.floor(pause(0, 7) / 1000)).toBe(7);
  expect(pause(0)).toBeLessThanOrEqual(500);
  expect(pause(5)).toBeGreaterThanOrEqual(8_000);
  expect(pause(100)).toBeLessThanOrEqual(30_000);
});

test.each<[string, FakeReply]>([
  ['a pause', failure(503, 'overloaded', { 'Retry-After': '29' })],
  ['a request', never],
])('an abort ends %s', async (_, reply) => {
  fake = await startFake({ '/api/me': [reply] });
  const stop = new AbortController();
  const call = fake.client.request('me', {}, { signal: stop.signal });
  const ended = expect(within('the call', call, 10_000)).rejects.toBe('enough');
  await until('the request', () => fake.seen.length > 0);
  setTimeout(() => stop.abort('enough'), 50);
  await ended;
});

test('accepts an empty 202, and reports a late reply and pages of another server', async () => {
  const page = { status: 200, body: '<html>', headers: { 'Content-Type': 'text/html' } };
  const me: FakeReply[] = [{ status: 202, body: '' }, page];
  fake = await startFake({ '/api/me': me, '/api/media/1/thumb': [page], '/pulse': [never] }, { retries: 0 });
  expect(await fake.client.request('me')).toBeUndefined();
  await expect(fake.client.send('pulse', {}, { timeoutMs: 50 })).rejects.toMatchObject({ code: 'timeout' });
  await expect(fake.client.request('me')).rejects.toMatchObject({ code: 'unexpected_reply', status: 200 });
  await expect(fake.client.request('readVariant', { id: 1, variant: 'thumb' })).rejects.toThrow('status 200');
});

test('does not send a password to the server that a redirect names', async () => {
  fake = await startFake({ '/api/login': [{ status: 307, headers: { Location: '/elsewhere' } }] });
  const login = fake.client.login({ email: 'a@example.com', password: 'p' });
  await expect(login).rejects.toMatchObject({ code: 'network_error', status: 0 });
  expect(fake.seen.map(({ path }) => path)).toEqual(['/api/login']);
});

test('follow goes on after failures, and starts over after an expired cursor', async () => {
  const page = (id: number, next_cursor: string) =>
    ok({ items: [{ model: 'webform', id }], next_cursor, up_to_date: id > 1 });
  const empty = ok({ items: [], next_cursor: 'd', up_to_date: true });
  const replies = [page(1, 'b'), busy, 'lost', page(2, 'c'), failure(410, 'cursor_expired'), page(3, 'd')];
  fake = await startFake({
    '/api/content/changes': [...(replies as FakeReply[]), empty, failure(403, 'insufficient_scope')],
  });
  const [steps, errors]: [string[], string[]] = [[], []];
  const onError = ({ code }: PlatformError) => errors.push(code);
  const follow = async () => {
    for await (const step of fake.client.follow({ after: 'a', intervalMs: 1, onError }))
      steps.push(`${step.changes[0]?.id} ${step.cursor} ${step.startOver} ${step.upToDate}`);
  };
  await expect(follow()).rejects.toMatchObject({ code: 'insufficient_scope' });
  expect(steps).toEqual(['1 b false false', '2 c false true', '3 d true true']);
  expect(errors).toEqual(['service_unavailable', 'network_error']);
  const cursors = fake.seen.map(({ path }) => new URL(path, 'http://x').searchParams.get('after'));
  expect(cursors).toEqual(['a', 'b', 'b', 'b', 'c', null, 'd', 'd']);
});
