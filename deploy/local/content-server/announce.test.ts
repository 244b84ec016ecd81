import type { RequestListener } from 'node:http';
import { afterEach, expect, test } from '@jest/globals';
import { type HttpServer, startHttpServer } from '../../../test/support/http-server.ts';
import { httpAnnouncer } from './announce.ts';
import type { Saved } from './records.ts';

const record: Saved = { model: 'webform', id: 12, title: 'T', version: 2 };
const tokenPath = '/api/token';
const clearPath = '/api/admin/cache/clear-model';
let server: HttpServer | undefined;

type Seen = Record<'path' | 'authorization', string>;
type Answer = { status: number; body: object; headers?: Record<string, string> };

/** Starts a gateway that returns these replies to clears, and a new token for each token request. */
async function gateway(...answers: Answer[]): Promise<{ address: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const tokens = (): number => seen.filter(({ path }) => path === tokenPath).length;
  const answer: RequestListener = async (request, response) => {
    const { url: path = '', headers } = request;
    await request.toArray();
    seen.push({ path, authorization: headers.authorization ?? '' });
    const access_token = `t${tokens()}`;
    const token = { access_token, token_type: 'Bearer', expires_in: 900, scope: 'cache:clear' };
    const next: Answer = path === tokenPath ? { status: 200, body: token } : answers.shift()!;
    response.writeHead(next.status, { 'content-type': 'application/json', ...next.headers });
    response.end(JSON.stringify(next.body));
  };
  server = await startHttpServer(answer);
  return { address: server.origin, seen };
}

let pauses: number[] = [];

const announcer = (address: string): ReturnType<typeof httpAnnouncer> =>
  httpAnnouncer(
    { gateway: address, kafka: null, database: '', clientId: 'c', clientSecret: 's:/ü' },
    async (ms) => void pauses.push(ms),
  );

const cleared: Answer = { status: 200, body: { success: true, keys_deleted: 2 } };
const refusal = (code: number, error: string, headers = {}): Answer => ({
  status: code,
  body: { error, code, message: `It says ${error}.`, request_id: 'r' },
  headers,
});

afterEach(() => {
  pauses = [];
  server?.close();
});

test("fetches the token once with the client's form-encoded secret and reuses it", async () => {
  const { address, seen } = await gateway(cleared, cleared);
  const http = announcer(address);
  expect(await http.announce([record], 'updated')).toBe('cleared by HTTP, 2 keys deleted');
  await http.announce([record], 'updated');
  expect(seen.map(({ path }) => path)).toEqual([tokenPath, clearPath, clearPath]);
  expect(Buffer.from(seen[0]!.authorization.slice(6), 'base64').toString()).toBe('c:s%3A%2F%C3%BC');
  expect(seen[2]!.authorization).toBe('Bearer t1');
});

test('replaces a refused token once', async () => {
  const { address, seen } = await gateway(refusal(401, 'invalid_token'), cleared);
  await announcer(address).announce([record], 'updated');
  expect(seen.map(({ path }) => path)).toEqual([tokenPath, clearPath, tokenPath, clearPath]);
  expect(seen[3]!.authorization).toBe('Bearer t2');
});

test('gives up after a second 401 and after the first 403', async () => {
  const twice = await gateway(refusal(401, 'invalid_token'), refusal(401, 'invalid_token'));
  await expect(announcer(twice.address).announce([record], 'updated')).rejects.toThrow(
    /webform 12 after 2 tries: 401/,
  );
  server?.close();
  const { address, seen } = await gateway(refusal(403, 'insufficient_scope'));
  await expect(announcer(address).announce([record], 'updated')).rejects.toThrow(
    'Gave up on announcing webform 12 after 1 try: 403 It says insufficient_scope.',
  );
  expect(seen).toHaveLength(2);
});

test('retries after a 503 when the time in Retry-After has passed', async () => {
  const { address } = await gateway(refusal(503, 'cache_unavailable', { 'retry-after': '1' }), cleared);
  await announcer(address).announce([record], 'updated');
  expect(pauses).toEqual([1_000]);
});

test('gives up on an unreachable gateway after 8 tries, with longer pauses each time', async () => {
  const { address } = await gateway();
  server!.close();
  await expect(announcer(address).announce([record], 'updated')).rejects.toThrow(
    /after 8 tries: the gateway does not answer/,
  );
  expect(pauses).toEqual([250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
});
