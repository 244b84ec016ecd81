import { afterEach, expect, test } from '@jest/globals';
import { failure, type FakeReply, ok } from '../../../test/support/fake-server.ts';
import {
  busy,
  credentials,
  type Fake,
  loggedIn,
  newStorage,
  outcomesOf,
  startFake,
  tokens,
} from './fake-platform.ts';

let fake: Fake;
afterEach(() => fake?.server.close());

const refreshes = () => fake.seen.filter(({ path }) => path === '/api/token').map(({ body }) => body);
const withToken = (token: string) => JSON.stringify({ grant_type: 'refresh_token', refresh_token: token });
const slowly =
  (reply: FakeReply, then: () => unknown = () => undefined): FakeReply =>
  async () => {
    await then();
    await new Promise((resolve) => setTimeout(resolve, 100));
    return reply;
  };

test('twenty refused requests of two tabs share one refresh', async () => {
  const storage = newStorage();
  fake = await loggedIn([tokens(2)], { storage });
  const both = [fake.client, fake.newClient()].map((client) => outcomesOf(client, 10));
  expect((await Promise.all(both)).flat()).toEqual(Array(20).fill(1));
  expect(refreshes()).toEqual([withToken('r1')]);
  expect([...storage.values.values()]).toEqual([expect.stringContaining('"refreshToken":"r2"')]);
});

test('a storage may return undefined, and a damaged value does not prevent a login', async () => {
  const [storage, replies] = [newStorage(), ['{"token":"t', undefined]];
  storage.getItem = (key) => storage.values.get(key) ?? replies.pop();
  fake = await startFake({ '/api/login': [tokens(1)] }, { storage });
  expect(await fake.client.isLoggedIn()).toBe(false);
  expect(await fake.client.login(credentials)).toMatchObject({ token: 't1' });
});

test('an expired access token is refreshed first, and a failed refresh is neither retried nor a logout', async () => {
  const login = ok({ token: 't1', refresh_token: 'r1', expires_in: 0 });
  const later = failure(503, 'service_unavailable', { 'Retry-After': '10' });
  fake = await startFake({ '/api/login': [login], '/api/token': [later, tokens(2)] });
  await fake.client.login(credentials);
  expect(await outcomesOf(fake.client, 1)).toEqual(['service_unavailable']);
  expect(await outcomesOf(fake.client, 1)).toEqual(['not_found']);
  expect(fake.seen.map(({ path }) => path).slice(1)).toEqual(['/api/token', '/api/token', '/api/me']);
});

test('repeats a refresh whose reply was lost, one request at a time', async () => {
  fake = await loggedIn([slowly('lost'), slowly(busy), slowly(tokens(2))]);
  expect(await outcomesOf(fake.client, 3)).toEqual(Array(3).fill(1));
  expect(refreshes()).toEqual(Array(3).fill(withToken('r1')));
});

test('an ended session logs out once, and is not refreshed again', async () => {
  const reasons: unknown[] = [];
  const storage = newStorage();
  const details = [{ path: 'reason', message: 'reused' }];
  const ended: FakeReply = { status: 400, body: { error: 'invalid_grant', message: 'M', details } };
  fake = await loggedIn([ended], { storage, onLogout: (error) => reasons.push(error.detail('reason')) });
  // A request that is refused later finds no tokens.
  const codes = new Set([...(await outcomesOf(fake.client, 10)), 'token_required']);
  expect(codes).toEqual(new Set(['invalid_grant', 'token_required']));
  expect([reasons, storage.values.size, await fake.client.isLoggedIn()]).toEqual([['reused'], 0, false]);
  await expect(fake.client.refresh()).rejects.toMatchObject({ code: 'token_required' });
  expect(refreshes()).toHaveLength(1);
});

test('does not repeat a refresh so late that the platform would take the token for stolen', async () => {
  const now = performance.now.bind(performance);
  const late = slowly(busy, () => (performance.now = () => now() + 10_000));
  fake = await loggedIn([late, tokens(2)], { retries: 0 });
  const outcomes = await outcomesOf(fake.client, 1).finally(() => (performance.now = now));
  expect([outcomes, refreshes()]).toEqual([['service_unavailable'], [withToken('r1')]]);
});

test('an abort ends the wait of its caller for a refresh, and no other', async () => {
  const stop = new AbortController();
  fake = await loggedIn([slowly(tokens(2), () => stop.abort('enough'))]);
  const other = outcomesOf(fake.client, 1);
  await expect(fake.client.request('me', {}, { signal: stop.signal })).rejects.toBe('enough');
  expect(await other).toEqual([1]);
});

test('a logout during a refresh stays a logout, also if the platform is unreachable', async () => {
  const storage = newStorage();
  fake = await loggedIn([slowly(tokens(2), () => storage.values.clear()), 'lost'], { storage });
  expect(await outcomesOf(fake.client, 1)).toEqual(['token_required']);
  await fake.client.login(credentials);
  fake.server.close();
  await expect(fake.client.logout()).rejects.toMatchObject({ code: 'network_error' });
  expect(storage.values.size).toBe(0);
});

test('a pending request, a follow and a pending logout never act for the next login', async () => {
  const storage = newStorage();
  const again = Promise.withResolvers<void>();
  fake = await startFake(
    {
      '/api/login': [tokens(1), tokens(2)],
      '/api/logout': [slowly(ok({}), () => fake.client.login(credentials).then(() => again.resolve()))],
      '/api/me': [slowly(busy, () => again.promise), ok({ id: 2 })],
      '/api/content/changes': [false, true].map((up_to_date) => ok({ items: [], up_to_date })),
    },
    { storage },
  );
  await fake.client.login(credentials);
  const steps = fake.client.follow();
  await steps.next();
  const pending = fake.client.request('me');
  await fake.client.logout();
  await expect(pending).rejects.toMatchObject({ code: 'token_required' });
  expect(await fake.client.isLoggedIn()).toBe(true);
  expect(await fake.client.request('me')).toEqual({ id: 2 });
  await expect(steps.next()).rejects.toMatchObject({ code: 'token_required' });
});

test('an upload whose stream ends after the next login is not sent for that login', async () => {
  fake = await startFake({ '/api/login': [tokens(1), tokens(2)], '/api/upload': [ok({ id: 1 })] });
  await fake.client.login(credentials);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const refused = expect(fake.client.upload(readable)).rejects.toMatchObject({ code: 'token_required' });
  await fake.client.login(credentials);
  await writable.close();
  await refused;
  expect(fake.seen.map(({ path }) => path)).toEqual(['/api/login', '/api/login']);
});

test('the report of pulse is requested with the access token', async () => {
  fake = await startFake({ '/api/login': [tokens(1)], '/pulse': [ok({ targets: [] })] });
  await fake.client.login(credentials);
  await fake.client.request('pulse');
  expect(fake.seen[1]!.headers.authorization).toBe('Bearer t1');
});

test('the code of a single sign-on logs in', async () => {
  fake = await startFake({ '/api/token': [tokens(1)], '/api/me': [ok({ id: 1 })] });
  await fake.client.loginWithCode({ code: 'c', code_verifier: 'v' });
  expect(refreshes()).toEqual([expect.stringContaining('"code":"c","code_verifier":"v"')]);
  await fake.client.request('me');
  expect(fake.seen[1]!.headers.authorization).toBe('Bearer t1');
});

test('a second factor completes the login, and a wrong password is no reason for a refresh', async () => {
  const details = [{ path: 'mfa_token', message: 'm' }];
  const needed: FakeReply = { status: 401, body: { error: 'mfa_required', message: 'M', details } };
  fake = await startFake({
    '/api/login': [needed],
    '/api/login/mfa': [tokens(1)],
    '/api/reauthenticate': [failure(401, 'invalid_credentials')],
  });
  const error = await fake.client.login(credentials).catch((reason: unknown) => reason);
  const mfa_token = (error as { detail: (path: string) => string }).detail('mfa_token');
  await fake.client.loginMfa({ mfa_token, code: '123456' });
  expect(fake.seen[1]!.body).toBe('{"mfa_token":"m","code":"123456"}');
  const wrong = fake.client.request('reauthenticate', { password: 'x' });
  await expect(wrong).rejects.toMatchObject({ code: 'invalid_credentials' });
  expect(fake.seen).toHaveLength(3);
});
