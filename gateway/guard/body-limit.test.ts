import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { json, text } from 'node:stream/consumers';
import type { ErrorEnvelope } from '@content-platform/contract';
import { until } from '../../test/support/wait.ts';
import { statusOf } from '../../test/support/raw-http.ts';
import { startGateway, type TestGateway } from '../testing/gateway.ts';
import type { Timeouts } from '../timeouts.ts';
import { startUpstream, type RecordingUpstream } from '../testing/upstream.ts';

const limit = 16_384;
const asJson = { 'Content-Type': 'application/json' };
let upstream: RecordingUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  // Megabytes are sent to it, on a machine that may be busy.
  gateway = await start({ drain: 60_000 });
});
const start = (timeouts: Partial<Timeouts>) =>
  startGateway({ services: { auth: upstream.url, 'content-cache': upstream.url }, timeouts });
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => void upstream.received.splice(0));

/** Sends the pieces, one after the other, and returns what comes back. Without a Content-Length it is chunked. */
async function post(headers: OutgoingHttpHeaders, ...pieces: string[]) {
  const request = httpRequest(`${gateway.origin}/api/login`, { method: 'POST', headers });
  request.on('error', () => undefined);
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  for (const piece of pieces) request.write(piece);
  request.end();
  const [response] = await answered;
  const body = (await json(response)) as ErrorEnvelope;
  return { status: response.statusCode, error: body.error, connection: response.headers.connection };
}

test.each([
  ['none', {}, undefined],
  ['text', { 'Content-Type': 'text/plain' }, 'unsupported_media_type'],
  [
    'a form, where only JSON is taken',
    { 'Content-Type': 'application/x-www-form-urlencoded' },
    'unsupported_media_type',
  ],
  ['JSON of another kind', { 'Content-Type': 'application/json-patch+json' }, 'unsupported_media_type'],
  ['two types', { 'Content-Type': 'text/plain, application/json' }, 'unsupported_media_type'],
  ['no type', { 'Content-Type': '' }, 'unsupported_media_type'],
  ['gzip', { ...asJson, 'Content-Encoding': 'gzip' }, 'unsupported_media_type'],
  ['gzip twice', { ...asJson, 'Content-Encoding': 'identity, gzip' }, 'unsupported_media_type'],
  ['identity', { ...asJson, 'Content-Encoding': 'identity' }, undefined],
  ['a charset', { 'Content-Type': 'Application/JSON; charset=utf-8' }, undefined],
])('%s', async (name, headers, error) => {
  const answer =
    name === 'none'
      ? await post({ 'Content-Length': 0 })
      : await post({ 'Content-Length': 2, ...headers }, '{}');
  expect(answer.error).toBe(error);
  expect(upstream.received).toHaveLength(error ? 0 : 1);
});

describe('size', () => {
  const whole = 'x'.repeat(limit);
  test('the limit itself passes, by length and chunked', async () => {
    expect((await post({ ...asJson, 'Content-Length': limit }, whole)).status).toBe(200);
    expect((await post(asJson, whole.slice(0, 100), whole.slice(100))).status).toBe(200);
    expect(upstream.received.map(({ body }) => body.length)).toEqual([limit, limit]);
    expect(upstream.received.map(({ headers }) => headers['content-length'])).toEqual([
      String(limit),
      String(limit),
    ]);
  });

  test('one byte more is refused, by length and counted, and nothing of it arrives', async () => {
    expect(await post({ ...asJson, 'Content-Length': limit + 1 }, whole, 'x')).toMatchObject({ status: 413 });
    expect(await post(asJson, whole, 'x')).toMatchObject({ status: 413, error: 'payload_too_large' });
    expect(upstream.received).toEqual([]);
  });

  test('a client that sends 20 MB before it reads gets its answer', async () => {
    const piece = 'x'.repeat(1_000_000);
    const pieces = Array.from({ length: 20 }, () => piece);
    expect(await post(asJson, ...pieces)).toMatchObject({ status: 413, connection: 'close' });
    const counted = await post({ ...asJson, 'Content-Length': 20_000_000 }, ...pieces);
    expect(counted).toMatchObject({ status: 413, connection: 'close' });
    expect(await post({ 'Content-Type': 'text/plain' }, ...pieces)).toMatchObject({ status: 415 });
  });

  test('so does one that does not even look before everything is sent', async () => {
    const socket = connect(Number(new URL(gateway.origin).port), '127.0.0.1').pause();
    const bytes = 30_000_000;
    const head = `POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`;
    await new Promise((resolve, reject) => {
      socket.once('error', reject).write(head);
      socket.write(Buffer.alloc(bytes, 'x'), resolve);
    });
    expect(statusOf(await text(socket))).toBe(413);
  });

  test('the answer comes at once, and what follows is read for a limited time only', async () => {
    const drainMs = 2_000;
    const impatient = await start({ drain: drainMs });
    const socket = connect(Number(new URL(impatient.origin).port), '127.0.0.1');
    socket.on('error', () => undefined);
    const head = `POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n`;
    let raw = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => (raw += chunk));
    socket.write(head);
    await until('the answer is here', () => raw.includes('payload_too_large'));
    let sent = 0;
    const sending = setInterval(() => void (socket.write('x'.repeat(100)) && (sent += 1)), 20);
    await once(socket, 'close');
    clearInterval(sending);
    expect(sent).toBeGreaterThan(1);
    expect(statusOf(raw)).toBe(413);
    await impatient.close();
  });
});

test('an endpoint without a body refuses any', async () => {
  const request = httpRequest(`${gateway.origin}/.well-known/jwks.json`, {
    headers: { 'Content-Length': 2, ...asJson },
  });
  request.end('{}');
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  expect([response.statusCode, await text(response)]).toEqual([
    400,
    expect.stringMatching(/"error":"malformed_request".*takes no body/),
  ]);
  expect(upstream.received).toEqual([]);
});

test('a connection whose body was refused, but is here, goes on', async () => {
  const socket = connect(Number(new URL(gateway.origin).port), '127.0.0.1');
  let raw = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (raw += chunk));
  const head = 'POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
  socket.write(`${head}Content-Length: 2\r\n\r\n{}`);
  await until('the first answer', () => raw.includes('{"ok":true}'));
  socket.write(`GET /api/nothing HTTP/1.1\r\nHost: x\r\n\r\n`);
  await until('the second', () => raw.includes('not_found'));
  socket.destroy();
});
