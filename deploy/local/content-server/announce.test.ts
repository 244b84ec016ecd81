import { afterEach, expect, test } from '@jest/globals';
import {
  failure,
  type FakeReply,
  type FakeServer,
  ok,
  startFakeServer,
} from '../../../test/support/fake-server.ts';
import { httpAnnouncer } from './announce.ts';
import type { Saved } from './records.ts';

const record: Saved = { model: 'webform', id: 12, title: 'T', version: 2 };
const tokenPath = '/api/token';
const clearPath = '/api/admin/cache/clear-model';
let server: FakeServer | undefined;

/** Starts a gateway that returns these replies to clears, and a new token for each token request. */
async function gateway(...answers: FakeReply[]): Promise<FakeServer> {
  let tokens = 0;
  const token = () =>
    ok({ access_token: `t${(tokens += 1)}`, token_type: 'Bearer', expires_in: 900, scope: 'cache:clear' });
  return (server = await startFakeServer({ [tokenPath]: [token], [clearPath]: answers }));
}

let pauses: number[] = [];

const announcer = (address: string): ReturnType<typeof httpAnnouncer> =>
  httpAnnouncer(
    { gateway: address, kafka: null, database: '', clientId: 'c', clientSecret: 's:/ü' },
    async (ms) => void pauses.push(ms),
  );

const cleared = ok({ success: true, keys_deleted: 2 });

afterEach(() => {
  pauses = [];
  server?.close();
});

test("fetches the token once with the client's form-encoded secret and reuses it", async () => {
  const { origin, seen } = await gateway(cleared, cleared);
  const http = announcer(origin);
  expect(await http.announce([record], 'updated')).toBe('cleared by HTTP, 2 keys deleted');
  await http.announce([record], 'updated');
  expect(seen.map(({ path }) => path)).toEqual([tokenPath, clearPath, clearPath]);
  expect(Buffer.from(seen[0]!.headers.authorization!.slice(6), 'base64').toString()).toBe('c:s%3A%2F%C3%BC');
  expect(seen[2]!.headers.authorization).toBe('Bearer t1');
});

test('replaces a refused token once', async () => {
  const { origin, seen } = await gateway(failure(401, 'invalid_token'), cleared);
  await announcer(origin).announce([record], 'updated');
  expect(seen.map(({ path }) => path)).toEqual([tokenPath, clearPath, tokenPath, clearPath]);
  expect(seen[3]!.headers.authorization).toBe('Bearer t2');
});

test('gives up after a second 401 and after the first 403', async () => {
  const twice = await gateway(failure(401, 'invalid_token'), failure(401, 'invalid_token'));
  await expect(announcer(twice.origin).announce([record], 'updated')).rejects.toThrow(
    /webform 12 after 2 tries: 401/,
  );
  server?.close();
  const { origin, seen } = await gateway(failure(403, 'insufficient_scope'));
  await expect(announcer(origin).announce([record], 'updated')).rejects.toThrow(
    'Gave up on announcing webform 12 after 1 try: 403 M',
  );
  expect(seen).toHaveLength(2);
});

test('retries after a 503 when the time in Retry-After has passed', async () => {
  const { origin } = await gateway(failure(503, 'cache_unavailable', { 'retry-after': '1' }), cleared);
  await announcer(origin).announce([record], 'updated');
  expect(pauses).toEqual([1_000]);
});

test('gives up on an unreachable gateway after 8 tries, with longer pauses each time', async () => {
  const { origin } = await gateway();
  server!.close();
  await expect(announcer(origin).announce([record], 'updated')).rejects.toThrow(
    /after 8 tries: the gateway does not answer/,
  );
  expect(pauses).toEqual([250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
});
