import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { z } from 'zod';
import { defineEndpoint, type ErrorEnvelope, text } from '@content-platform/contract';
import { until } from '../../test/support/wait.ts';
import { HttpError } from './http-error.ts';
import { createLogger } from './logger.ts';
import { createMetrics } from './metrics.ts';
import { createService, handle } from './service.ts';
import type { Caller } from './tokens.ts';

const base = {
  service: 'auth',
  rateLimit: { requests: 1, seconds: 1 },
  summary: '',
  responses: { 200: { description: '', schema: z.unknown() } },
} as const;
const echo = defineEndpoint({
  ...base,
  name: 'echo',
  method: 'POST',
  path: '/api/echo/:id',
  access: 'public',
  params: z.strictObject({ id: z.string().regex(/^\d+$/) }),
  query: z.strictObject({ view: z.enum(['a', 'b']).default('a') }),
  body: { kinds: ['json', 'form'], maxBytes: 100, schema: z.strictObject({ name: text(1, 20) }) },
});
const secret = defineEndpoint({
  ...base,
  name: 'secret',
  method: 'GET',
  path: '/api/secret',
  access: 'cache:clear',
});
const broken = defineEndpoint({
  ...base,
  name: 'broken',
  method: 'GET',
  path: '/api/broken',
  access: 'public',
});

const fixed = defineEndpoint({
  ...base,
  name: 'fixed',
  method: 'POST',
  path: '/api/echo/all',
  access: 'public',
});

const whoAsks = defineEndpoint({
  ...base,
  name: 'whoAsks',
  method: 'GET',
  path: '/api/who-asks',
  access: 'public',
});

const switchedOff = defineEndpoint({
  ...base,
  name: 'switchedOff',
  method: 'POST',
  path: '/api/:feature/secret',
  access: 'user',
  params: z.strictObject({ feature: z.literal('feature') }),
  body: { kinds: ['json'], maxBytes: 10, schema: z.strictObject({}) },
});

const file = defineEndpoint({
  ...base,
  name: 'file',
  method: 'POST',
  path: '/api/file',
  access: 'public',
  query: z.strictObject({ read: z.enum(['all', 'nothing']).default('all') }),
  body: { kinds: ['multipart'], maxBytes: 10_000_000, schema: z.strictObject({ file: z.unknown() }) },
});

const stream = defineEndpoint({
  ...base,
  name: 'stream',
  method: 'GET',
  path: '/api/stream/:how',
  access: 'public',
  params: z.strictObject({ how: z.enum(['whole', 'broken', 'endless']) }),
  responses: { 200: { description: '', contentType: 'text/plain' } },
});

const callers: Record<string, Caller> = {
  person: { kind: 'user', id: 1, sessionId: 's', mustChangePassword: false, scopes: new Set() },
  machine: { kind: 'machine', clientId: 'cms', scopes: new Set(['cache:clear']) },
};
const log: string[] = [];
/** More than the sockets' buffers hold. */
const long = 'x'.repeat(4_000_000);
const chunk = 'y'.repeat(64 * 1024);
const streams: Readable[] = [];

function* chunksOf(how: 'whole' | 'broken' | 'endless') {
  for (let left = how === 'endless' ? Infinity : 20; left > 0; left -= 1) yield chunk;
  if (how === 'broken') throw new Error('the disk is gone');
}

const metrics = createMetrics('auth');
let server: Server;
let origin: string;
/** What the socket tells of the other end, where a test cannot have one there. */
let peer = '127.0.0.1';

beforeAll(async () => {
  const tokens = {
    verify: (token: string) => {
      const caller = callers[token];
      return caller ? Promise.resolve(caller) : Promise.reject(new HttpError(401, 'invalid_token', 'No.'));
    },
  };
  const logger = createLogger('auth', 'info', { write: (line) => void log.push(line) });
  const app = createService({ name: 'auth', logger, metrics, tokens }, [
    handle(echo, ({ params, query, body }) => ({ status: 200 as const, body: { params, query, body } })),
    handle(secret, ({ caller }) => ({ status: 200 as const, body: { kind: caller.kind } })),
    handle(fixed, () => ({ status: 200 as const, body: { fixed: true } })),
    handle(whoAsks, ({ address }) => ({ status: 200 as const, body: { address } })),
    handle(
      switchedOff,
      () => ({ status: 200 as const, body: {} }),
      ({ feature }) => {
        if (feature !== 'feature') throw new HttpError(404, 'not_found', 'No.');
        throw new HttpError(501, 'identity_login_disabled', 'No.');
      },
    ),
    handle(file, async ({ query, body }) => {
      if (query.read === 'nothing') return { status: 200 as const, body: { long } };
      return { status: 200 as const, body: { text: await textOf(body) } };
    }),
    handle(stream, ({ params: { how } }) => {
      const body = Readable.from(chunksOf(how));
      streams.push(body);
      return { status: 200 as const, body, headers: { 'Content-Type': 'text/plain' } };
    }),
    handle(broken, () => {
      throw new Error('the disk is on fire');
    }),
  ]);
  server = createServer((request, response) => {
    Object.defineProperty(request.socket, 'remoteAddress', { value: peer, configurable: true });
    app(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function ask(path: string, init: RequestInit = {}) {
  const response = await fetch(origin + path, init);
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as ErrorEnvelope,
  };
}
const post = (body: string, type = 'application/json', path = '/api/echo/1') =>
  ask(path, { method: 'POST', body, headers: { 'Content-Type': type } });

test('what passes the checks reaches the handler, parsed', async () => {
  const json = await post('{"name":"x"}', 'application/json; charset=utf-8', '/api/echo/7?view=b');
  expect(json.body).toEqual({ params: { id: '7' }, query: { view: 'b' }, body: { name: 'x' } });
  const form = await post('name=x', 'application/x-www-form-urlencoded');
  expect(form.body).toMatchObject({ body: { name: 'x' }, query: { view: 'a' } });
});

test.each([
  ['{"name":', 'application/json', 400, 'malformed_json'],
  ['{"name":"x"}', 'text/plain', 415, 'unsupported_media_type'],
  ['{"name":"x"}', 'application/json; charset=latin1', 415, 'unsupported_media_type'],
  [`{"name":"${'x'.repeat(100)}"}`, 'application/json', 413, 'payload_too_large'],
  ['[]', 'application/json', 422, 'validation_failed'],
  ['null', 'application/json', 422, 'validation_failed'],
  ['', 'application/json', 422, 'validation_failed'],
  ['{"name":"x","more":1}', 'application/json', 422, 'validation_failed'],
  ['{"name":"x","__proto__":{"admin":true}}', 'application/json', 422, 'validation_failed'],
  ['{"name":"\\u0000"}', 'application/json', 422, 'validation_failed'],
  ['{"name":"\\ud800"}', 'application/json', 422, 'validation_failed'],
  ['name=x&name=y', 'application/x-www-form-urlencoded', 422, 'validation_failed'],
])('a body %j as %s answers %i %s', async (body, type, status, error) => {
  expect(await post(body, type)).toMatchObject({ status, body: { error, code: status } });
});

test('a compressed body is refused', async () => {
  const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' };
  expect(await ask('/api/echo/1', { method: 'POST', body: '{}', headers })).toMatchObject({ status: 415 });
});

test('wrong and repeated parameters are named', async () => {
  const { status, body } = await post('{"name":"x"}', 'application/json', '/api/echo/x?view=a&view=b&more=1');
  expect(status).toBe(422);
  expect(body.details?.map((detail) => detail.path)).toEqual(['path.id', 'query.view', 'query']);
  expect((await ask('/api/broken?a=1')).status).toBe(422);
});

test('unknown paths, methods and undecodable paths have their status', async () => {
  expect(await ask('/api/nothing')).toMatchObject({ status: 404, body: { error: 'not_found' } });
  expect(await ask('/api/secret/')).toMatchObject({ status: 404 });
  expect(await ask('/API/secret')).toMatchObject({ status: 404 });
  const wrong = await ask('/api/secret', { method: 'POST' });
  expect(wrong).toMatchObject({ status: 405, body: { error: 'method_not_allowed' } });
  expect(wrong.headers.get('allow')).toBe('GET');
  expect(await post('{}', 'application/json', '/api/echo/%ff')).toMatchObject({ status: 400 });
});

test('a fixed segment is tried before a parameter', async () => {
  expect((await ask('/api/echo/all', { method: 'POST' })).body).toEqual({ fixed: true });
});

test('a token is asked for, and its scope', async () => {
  const as = (token: string) => ask('/api/secret', { headers: { Authorization: `Bearer ${token}` } });
  const none = await ask('/api/secret');
  expect(none).toMatchObject({ status: 401, body: { error: 'token_required' } });
  expect(none.headers.get('www-authenticate')).toBe('Bearer');
  expect(await as('forged')).toMatchObject({ status: 401, body: { error: 'invalid_token' } });
  expect(await as('person')).toMatchObject({ status: 403, body: { error: 'insufficient_scope' } });
  expect(await as('machine')).toMatchObject({ status: 200 as const, body: { kind: 'machine' } });
});

test('whether an endpoint is there at all is said after who asks, and before what they ask', async () => {
  const headers = { 'Content-Type': 'text/plain' };
  const wrong = { method: 'POST', headers, body: 'x'.repeat(20) };
  expect(await ask('/api/feature/secret', wrong)).toMatchObject({ status: 401 });
  const known = { ...wrong, headers: { ...headers, Authorization: 'Bearer person' } };
  expect(await ask('/api/feature/secret', known)).toMatchObject({ status: 501 });
  expect(await ask('/api/other/secret', known)).toMatchObject({ status: 404 });
});

test('the client’s address is what the gateway tells, or the peer’s, always without a zone', async () => {
  const tell = async (told?: string) =>
    (await ask('/api/who-asks', told === undefined ? {} : { headers: { 'X-Forwarded-For': told } })).body;
  expect(await tell()).toEqual({ address: '127.0.0.1' });
  expect(await tell('2001:db8::7')).toEqual({ address: '2001:db8::7' });
  expect(await tell('fe80::1%eth0')).toEqual({ address: 'fe80::1' });
  expect(await tell('nobody')).toEqual({ address: '127.0.0.1' });
  peer = 'fe80::2%eth0';
  expect(await tell()).toEqual({ address: 'fe80::2' });
  peer = '127.0.0.1';
});

test('an unexpected error says nothing to the client and all to the log, by the request’s id', async () => {
  const { status, headers, body } = await ask('/api/broken', { headers: { 'X-Request-Id': 'abc-1' } });
  expect(status).toBe(500);
  expect(headers.get('x-request-id')).toBe('abc-1');
  expect(JSON.stringify(body)).not.toContain('fire');
  expect(body.request_id).toBe('abc-1');
  const line = log.find((entry) => entry.includes('on fire'));
  expect(JSON.parse(line!)).toMatchObject({ request_id: 'abc-1', level: 'error' });
});

test('an answer above 500 that is meant is a warning without a stack', async () => {
  const headers = {
    'Content-Type': 'text/plain',
    Authorization: 'Bearer person',
    'X-Request-Id': 'meant-1',
  };
  expect(await ask('/api/feature/secret', { method: 'POST', headers, body: 'x' })).toMatchObject({
    status: 501,
  });
  const line = log.find((entry) => entry.includes('meant-1'))!;
  expect(JSON.parse(line)).toMatchObject({ level: 'warn', code: 'identity_login_disabled' });
  expect(line).not.toContain('stack');
});

test('a client’s request id is taken only when it is harmless', async () => {
  const { headers } = await ask('/api/nothing', { headers: { 'X-Request-Id': 'a b' } });
  expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
});

test('a refused body that still comes ends the connection after the reply', async () => {
  const request = httpRequest(`${origin}/api/echo/1`, {
    method: 'POST',
    headers: { 'Content-Type': 'text/plain', 'Content-Length': 1_000_000 },
  });
  request.on('error', () => undefined);
  request.write('x'.repeat(1000));
  const [response] = (await once(request, 'response')) as [
    { statusCode: number; headers: Record<string, string> },
  ];
  expect(response.statusCode).toBe(415);
  expect(response.headers['connection']).toBe('close');
  request.destroy();
});

const multipart = { 'Content-Type': 'multipart/form-data; boundary=b' };
const part = '--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nhello\r\n--b--\r\n';

test('a multipart body is the request itself, as it came', async () => {
  const sent = { method: 'POST', headers: multipart, body: part };
  expect(await ask('/api/file', sent)).toMatchObject({ status: 200, body: { text: part } });
  const inChunks = { ...sent, body: Readable.toWeb(Readable.from([part])), duplex: 'half' };
  expect(await ask('/api/file', inChunks as RequestInit)).toMatchObject({ body: { text: part } });
});

test.each([
  ['no body', 422, 'validation_failed', { 'Content-Length': '0', ...multipart }],
  ['JSON', 415, 'unsupported_media_type', { 'Content-Length': '2', 'Content-Type': 'application/json' }],
  ['no type', 415, 'unsupported_media_type', { 'Content-Length': '2' }],
  [
    'gzip',
    415,
    'unsupported_media_type',
    { 'Content-Length': '2', 'Content-Encoding': 'gzip', ...multipart },
  ],
  [
    'a body that says it is too long',
    413,
    'payload_too_large',
    { 'Content-Length': '10000001', ...multipart },
  ],
])('instead of a multipart body %s: %i %s, before it comes', async (_, status, error, headers) => {
  const request = httpRequest(`${origin}/api/file`, { method: 'POST', headers });
  request.on('error', () => undefined).flushHeaders();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  expect({ status: response.statusCode, body: JSON.parse(await firstOf(response)) }).toMatchObject({
    status,
    body: { error },
  });
  request.destroy();
});

/** A short reply, of which the end may be long in coming. */
async function firstOf(response: IncomingMessage): Promise<string> {
  const [data] = (await once(response, 'data')) as [Buffer];
  return data.toString();
}

/** Sends a head and then `body` bytes, looking at nothing that comes back until the other side closes. */
async function sendAll(path: string, length: number, body: number): Promise<string> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  const chunks: Buffer[] = [];
  socket.on('error', () => undefined);
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${multipart['Content-Type']}\r\nContent-Length: ${length}\r\n\r\n`,
  );
  socket.pause();
  for (let sent = 0; sent < body && !socket.destroyed; sent += 100_000) {
    const drained = socket.write(Buffer.alloc(100_000));
    if (!drained) await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
  }
  socket.on('data', (data) => void chunks.push(data)).resume();
  if (!socket.closed) await once(socket, 'close');
  return Buffer.concat(chunks).toString();
}

test('a reply while the body is still coming reaches the client whole', async () => {
  const reply = await sendAll('/api/file?read=nothing', 9_000_000, 9_000_000);
  expect(reply).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(reply.endsWith(`\r\n\r\n${JSON.stringify({ long })}`)).toBe(true);
});

test('who does not send the rest has the reply, and then no connection', async () => {
  const reply = await sendAll('/api/file?read=nothing', 9_000_000, 100_000);
  expect(reply.endsWith(`\r\n\r\n${JSON.stringify({ long })}`)).toBe(true);
});

test('a stream is the reply as it comes', async () => {
  const response = await fetch(`${origin}/api/stream/whole`);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
  expect(await response.text()).toBe(chunk.repeat(20));
});

test('a stream that breaks off breaks the connection off: it does not look whole', async () => {
  const response = await fetch(`${origin}/api/stream/broken`);
  expect(response.status).toBe(200);
  await expect(response.text()).rejects.toThrow();
});

test('who hangs up ends the stream', async () => {
  const hangUp = new AbortController();
  const response = await fetch(`${origin}/api/stream/endless`, { signal: hangUp.signal });
  await response.body!.getReader().read();
  hangUp.abort();
  await until('it is closed', () => streams.at(-1)!.closed);
});

test('each request is one observation under its template', async () => {
  await ask('/api/secret');
  const { values } = await metrics.requestDuration.get();
  const counts = values.filter(({ metricName }) => metricName?.endsWith('_count'));
  expect(
    counts.find(({ labels }) => labels.route === '/api/secret' && labels.status === '401')?.value,
  ).toBeGreaterThan(0);
  expect(new Set(counts.map(({ labels }) => labels.route))).toEqual(
    new Set([
      '/api/:feature/secret',
      '/api/echo/:id',
      '/api/echo/all',
      '/api/file',
      '/api/secret',
      '/api/stream/:how',
      '/api/broken',
      '/api/who-asks',
      'unknown',
    ]),
  );
});
