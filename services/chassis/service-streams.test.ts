import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { z } from 'zod';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { handle } from './service.ts';
import { define, serve } from './testing/served.ts';

const file = define('file', 'POST', '/api/file', {
  query: z.strictObject({ read: z.enum(['all', 'nothing']).default('all') }),
  body: { kinds: ['multipart'], maxBytes: 10_000_000, schema: z.strictObject({ file: z.unknown() }) },
});

const stream = define('stream', 'GET', '/api/stream/:how', {
  params: z.strictObject({ how: z.enum(['whole', 'broken', 'endless']) }),
  responses: { 200: { description: '', contentType: 'text/plain' } },
});

/** More than the sockets' buffers hold. */
const long = 'x'.repeat(4_000_000);
const chunk = 'y'.repeat(64 * 1024);
const streams: Readable[] = [];

function* chunksOf(how: 'whole' | 'broken' | 'endless') {
  for (let left = how === 'endless' ? Infinity : 20; left > 0; left -= 1) yield chunk;
  if (how === 'broken') throw new Error('the disk failed');
}

const served = useStarted(() =>
  serve([
    handle(file, async ({ query, body }) => {
      if (query.read === 'nothing') return { status: 200 as const, body: { long } };
      return { status: 200 as const, body: { text: await textOf(body) } };
    }),
    handle(stream, async ({ params: { how }, header, signal }) => {
      const body = Readable.from(chunksOf(how));
      streams.push(body);
      if (header('x-late')) await once(signal(), 'abort');
      const headers = { 'Content-Type': 'text/plain', 'X-Range': header('range') ?? 'none' };
      return { status: 200 as const, body, headers };
    }),
  ]),
);

const multipart = { 'Content-Type': 'multipart/form-data; boundary=b' };
const part = '--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nhello\r\n--b--\r\n';

test('a multipart body is the unread request', async () => {
  const sent = { method: 'POST', headers: multipart, body: part };
  expect(await served.ask('/api/file', sent)).toMatchObject({ status: 200, body: { text: part } });
  const inChunks = { ...sent, body: Readable.toWeb(Readable.from([part])), duplex: 'half' };
  expect(await served.ask('/api/file', inChunks as RequestInit)).toMatchObject({ body: { text: part } });
});

const tooLong = { 'Content-Length': '10000001', ...multipart };
const gzip = { 'Content-Length': '2', 'Content-Encoding': 'gzip', ...multipart };
test.each([
  ['no body', 422, 'validation_failed', { 'Content-Length': '0', ...multipart }],
  ['JSON', 415, 'unsupported_media_type', { 'Content-Length': '2', 'Content-Type': 'application/json' }],
  ['no type', 415, 'unsupported_media_type', { 'Content-Length': '2' }],
  ['gzip', 415, 'unsupported_media_type', gzip],
  ['a body that says it is too long', 413, 'payload_too_large', tooLong],
])(
  'refuses %s in place of a multipart body, before the body arrives: %i %s',
  async (_, status, error, sent) => {
    const request = httpRequest(`${served.origin}/api/file`, { method: 'POST', headers: sent });
    request.on('error', () => undefined).flushHeaders();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const [data] = (await once(response, 'data')) as [Buffer];
    const body = JSON.parse(data.toString()) as object;
    expect({ status: response.statusCode, body }).toMatchObject({ status, body: { error } });
    // The connection closes, unless the body is complete.
    expect(response.headers.connection).toBe(sent['Content-Length'] === '0' ? 'keep-alive' : 'close');
    request.destroy();
  },
);

/** Sends a head with this Content-Length, and then `bytes` bytes. Reads nothing until all of them are sent. */
async function sendAll(path: string, contentLength: number, bytes: number): Promise<string> {
  const { hostname, port } = new URL(served.origin);
  const socket = connect(Number(port), hostname);
  const chunks: Buffer[] = [];
  socket.on('error', () => undefined);
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${multipart['Content-Type']}\r\nContent-Length: ${contentLength}\r\n\r\n`,
  );
  socket.pause();
  for (let sent = 0; sent < bytes && !socket.destroyed; sent += 100_000) {
    const drained = socket.write(Buffer.alloc(100_000));
    if (!drained) await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
  }
  socket.on('data', (data) => void chunks.push(data)).resume();
  if (!socket.closed) await once(socket, 'close');
  return Buffer.concat(chunks).toString();
}

test('a reply before the end of the body reaches the client completely', async () => {
  const reply = await sendAll('/api/file?read=nothing', 9_000_000, 9_000_000);
  expect(reply).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(reply.endsWith(`\r\n\r\n${JSON.stringify({ long })}`)).toBe(true);
});

test('a client that stops sending gets the reply and then loses the connection', async () => {
  const reply = await sendAll('/api/file?read=nothing', 9_000_000, 100_000);
  expect(reply.endsWith(`\r\n\r\n${JSON.stringify({ long })}`)).toBe(true);
});

test('passes a stream through as the reply', async () => {
  const response = await fetch(`${served.origin}/api/stream/whole`);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
  expect(await response.text()).toBe(chunk.repeat(20));
});

test('a failed stream closes the connection, so that the reply does not look complete', async () => {
  const response = await fetch(`${served.origin}/api/stream/broken`);
  await expect(response.text()).rejects.toThrow();
  expect(served.log.splice(0).join('')).toMatch(/the disk failed.*request failed; the client got/);
});

test('HEAD sends nothing of a stream and closes it, and ignores Range', async () => {
  const init = { headers: { Range: 'bytes=0-1' } };
  for (const how of ['whole', 'endless', 'broken']) {
    const path = `${served.origin}/api/stream/${how}`;
    const response = await fetch(path, { ...init, method: 'HEAD', signal: AbortSignal.timeout(30_000) });
    const seen = [response.status, response.headers.get('x-range'), await response.text()];
    expect(seen).toEqual([200, 'none', '']);
    await until('it is closed', () => streams.at(-1)!.closed);
  }
  const whole = await fetch(`${served.origin}/api/stream/whole`, init);
  expect(whole.headers.get('x-range')).toBe('bytes=0-1');
  await whole.text();
});

test('closes the stream of a client that disconnected before the reply', async () => {
  const { length } = streams;
  const hangUp = new AbortController();
  const init = { headers: { 'X-Late': 'yes' }, signal: hangUp.signal };
  const asked = fetch(`${served.origin}/api/stream/whole`, init).catch(() => undefined);
  await until('the stream is open', () => streams.length > length);
  hangUp.abort();
  await asked;
  await until('it is closed', () => streams.at(-1)!.closed);
});

test('closes the stream when the client disconnects', async () => {
  const hangUp = new AbortController();
  const response = await fetch(`${served.origin}/api/stream/endless`, { signal: hangUp.signal });
  await response.body!.getReader().read();
  hangUp.abort();
  await until('it is closed', () => streams.at(-1)!.closed);
  expect(served.log.join('')).not.toContain('incomplete');
});
