import { describe, expect, test } from '@jest/globals';
import { text } from 'node:stream/consumers';
import { statusOf } from '../../test/support/raw-http.ts';
import { until, within } from '../../test/support/wait.ts';
import { rawGet, useTestGateway } from '../testing/use-test-gateway.ts';

const fixture = useTestGateway({ timeouts: { drain: 100 } });
const { send } = fixture;
/** Starts another gateway for tests that send megabytes; the machine may be busy. */
const drainLonger = () => fixture.start({ timeouts: { drain: 60_000 } });

const host = 'Host: gateway.test\r\n';
const post = `POST /api/login HTTP/1.1\r\n${host}Connection: close\r\nContent-Type: application/json\r\n`;
const get = rawGet().slice(0, -2);
const chunked = 'Transfer-Encoding: chunked\r\n';

/** Checks the error envelope and returns its error code. */
function errorOf(raw: string): string {
  const body = raw.slice(raw.indexOf('\r\n\r\n') + 4);
  const envelope = JSON.parse(body) as { error: string; code: number; request_id: string };
  expect(envelope.code).toBe(statusOf(raw));
  expect(envelope.request_id).toMatch(/^[0-9a-f-]{36}$/);
  expect(raw).toMatch(new RegExp(`^X-Request-Id: ${envelope.request_id}\r$`, 'im'));
  expect(raw).toMatch(/^Connection: close\r$/m);
  return envelope.error;
}

describe('refuses ambiguous framing and forwards nothing', () => {
  test.each([
    ['two lengths', 'Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}'],
    ['length, then chunked', `Content-Length: 4\r\n${chunked}\r\n0\r\n\r\n`],
    ['chunked, then length', `${chunked}Content-Length: 4\r\n\r\n0\r\n\r\n`],
    ['chunked twice', `${chunked}${chunked}\r\n0\r\n\r\n`],
    ['chunked with a space before the colon', 'Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n'],
    ['a chunk size that is none', `${chunked}\r\nzz\r\n{}\r\n0\r\n\r\n`],
    ['a chunk longer than its size', `${chunked}\r\n1\r\n{}\r\n0\r\n\r\n`],
    ['a folded header', 'X-A: 1\r\n 2\r\nContent-Length: 2\r\n\r\n{}'],
    ['a header ended by bare LF', 'X-A: 1\nContent-Length: 2\r\n\r\n{}'],
    ['a header with bare CR', 'X-A: 1\rContent-Length: 2\r\n\r\n{}'],
    ['NUL in a header', 'X-A: a\0b\r\nContent-Length: 2\r\n\r\n{}'],
    ["a space in a header's name", 'X A: 1\r\nContent-Length: 2\r\n\r\n{}'],
    ['a line without a colon', 'garbage\r\nContent-Length: 2\r\n\r\n{}'],
    ['a second Host', 'Host: other\r\nContent-Length: 2\r\n\r\n{}'],
  ])('%s', async (_, rest) => {
    expect(errorOf(await send(post + rest))).toBe('malformed_request');
    expect(fixture.upstream.received).toEqual([]);
  });

  test.each([
    ['no Host', 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n'],
    ['chunked in HTTP/1.0', post.replace('HTTP/1.1', 'HTTP/1.0') + `${chunked}\r\n2\r\n{}\r\n0\r\n\r\n`],
    [
      'two codings, where there is no token',
      `POST /api/password HTTP/1.1\r\n${host}Transfer-Encoding: x\r\n${chunked}\r\n0\r\n\r\n${get}\r\n`,
    ],
    ['two Hosts, and a request behind it', `GET /x HTTP/1.1\r\n${host}${host}\r\n${get}\r\n`],
    ['another version', `GET /health HTTP/3.0\r\n${host}\r\n`],
    ["a version that is not this protocol's", `GET /health HTTP/2.0\r\n${host}Connection: close\r\n\r\n`],
    ['a method in lower case', `get /health HTTP/1.1\r\n${host}\r\n`],
    ['an unknown method', `STEAL /health HTTP/1.1\r\n${host}\r\n`],
    ['a space in the target', `GET /health me HTTP/1.1\r\n${host}\r\n`],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['noise', '\x16\x03\x01\x02\x00\x01\x00\r\n\r\n'],
  ])('%s', async (_, text) => {
    expect(errorOf(await send(text))).toBe('malformed_request');
    expect(fixture.upstream.received).toEqual([]);
  });
});

test.each(['/\xc3\xa9', '/a\0', '/a\tb', '/a\x7f', 'api/me', '?a', 'x:80', '\\api'])(
  'returns 400 for the target %j, which the parser refuses',
  async (target) => {
    expect(errorOf(await send(`GET ${target} HTTP/1.1\r\n${host}\r\n`))).toBe('malformed_target');
  },
);

test('forwards a chunked body with its length, without trailers and chunk extensions', async () => {
  const body = '3;x="y"\r\n{"a\r\n3\r\n":1\r\n1\r\n}\r\n0\r\nX-User-Id: 1\r\nAuthorization: Bearer x\r\n\r\n';
  expect(statusOf(await send(`${post}${chunked}\r\n${body}`))).toBe(200);
  expect(fixture.upstream.received).toHaveLength(1);
  const [{ body: arrived, headers }] = fixture.upstream.received as [(typeof fixture.upstream.received)[0]];
  expect(arrived).toBe('{"a":1}');
  expect(headers['content-length']).toBe('7');
  expect(headers).not.toHaveProperty('transfer-encoding');
  expect(headers).not.toHaveProperty('x-user-id');
  expect(headers).not.toHaveProperty('authorization');
});

test('checks the bytes after a body as a separate request', async () => {
  const inner = `GET /api/me HTTP/1.1\r\n${host}Connection: close\r\n\r\n`;
  const raw = await send(
    `POST /api/login HTTP/1.1\r\n${host}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}${inner}`,
  );
  expect(raw.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 401']);
  expect(fixture.upstream.received.map(({ url }) => url)).toEqual(['/api/login']);
});

test('sends no error for a malformed pipelined request before the reply to the first request', async () => {
  for (const first of [get, `${get}\r\n${get}`]) {
    const raw = await send(`${first}\r\nGARBAGE\r\n\r\n`);
    expect(new Set(raw.match(/HTTP\/1\.1 \d+/g))).toEqual(new Set(['HTTP/1.1 200']));
    expect(raw.match(/{"ok":true}/g)).toHaveLength(first.split('GET').length - 1);
    expect(raw).not.toContain('malformed');
  }
});

test('closes the connection if the body of a queued request is malformed', async () => {
  const raw = `GET /nothing HTTP/1.1\r\n${host}\r\n`.repeat(20) + post.replace('Connection: close\r\n', '');
  const { socket } = fixture.open(`${raw}${chunked}\r\nzz\r\n`);
  await within('the end', new Promise((resolve) => socket.once('close', resolve)), 20_000);
});

test.each([
  ['404', 'POST /api/nothing', 'not_found'],
  ['405', 'POST /health', 'method_not_allowed'],
])('a client refused with %s gets that reply even if its body is malformed', async (_, line, error) => {
  await fixture.start({ timeouts: { drain: 1_000 } });
  const head = `${line} HTTP/1.1\r\n${host}${chunked}\r\n`;
  for (const body of ['zz\r\n{}\r\n0\r\n\r\n', `zz\r\n${'x'.repeat(300_000)}`])
    expect(errorOf(await send(head + body))).toBe(error);
});

test('sends no error for a pipelined CONNECT before the reply to the first request', async () => {
  const raw = await send(`${get}\r\nCONNECT 127.0.0.1:22 HTTP/1.1\r\n${host}\r\n`);
  expect(raw).toMatch(/^HTTP\/1\.1 200/);
  expect(raw).not.toContain('malformed');
});

test('a CONNECT does not keep earlier requests of its connection open', async () => {
  await fixture.start({ timeouts: { idle: 1_000 } });
  fixture.upstream.answer = () => undefined;
  fixture.open(`${get}\r\n${get}\r\nCONNECT 127.0.0.1:22 HTTP/1.1\r\n${host}\r\n`);
  const { log } = fixture.gateway;
  await until('both have ended', () => log.join('').match(/"status":499/g)?.length === 2);
});

test('returns 431 for headers over 16 KB or more than 1,000 headers', async () => {
  await drainLonger();
  const many = 'X: y\r\n'.repeat(1_100);
  for (const headers of [`X: ${'x'.repeat(17_000)}\r\n`, `X: ${'x'.repeat(5_000_000)}\r\n`, many]) {
    const raw = await send(`${get}${headers}\r\n`);
    expect(errorOf(raw)).toBe('headers_too_large');
    expect(raw).toContain('larger than 16 KB or has more than 1,000 headers');
  }
  expect(errorOf(await send(`GET /${'x'.repeat(17_000)} HTTP/1.1\r\n${host}\r\n`))).toBe('headers_too_large');
  expect(errorOf(await send(`${get}${'X: y\r\n'.repeat(4_000)}\r\n`))).toBe('headers_too_large');
  const fits = `${get}Connection: close\r\nX-Large: ${'x'.repeat(15_500)}\r\n\r\n`;
  expect(statusOf(await send(fits))).toBe(200);
});

test.each([
  ['headers', `${get}X-Large: `, 'headers_too_large'],
  ['something for a tunnel', `CONNECT 127.0.0.1:22 HTTP/1.1\r\n${host}\r\n`, 'malformed_target'],
])('a client that sends megabytes of %s before it reads is refused', async (_, start, error) => {
  await drainLonger();
  const socket = fixture.connect().pause();
  await new Promise((resolve) => {
    socket.write(start);
    socket.write(Buffer.alloc(20_000_000, 'x'), resolve);
  });
  expect(errorOf(await text(socket))).toBe(error);
  expect(fixture.upstream.received).toEqual([]);
});

test('disconnects a client that never stops sending', async () => {
  const { socket } = fixture.open('noise\r\n\r\n');
  socket.allowHalfOpen = true;
  const sending = setInterval(() => socket.write('more'), 20);
  // Not `once` of node:events, which would reject when the socket fails.
  await within('the end', new Promise((resolve) => socket.once('close', resolve)));
  clearInterval(sending);
});

test('ignores an Upgrade header', async () => {
  const upgrade = 'Connection: Upgrade, close, X-Drop\r\nUpgrade: websocket\r\nX-Drop: 1\r\n';
  expect(statusOf(await send(`${get}${upgrade}\r\n`))).toBe(200);
  const { headers } = fixture.upstream.received[0]!;
  expect(headers['connection']).toBe('keep-alive');
  expect(headers).not.toHaveProperty('upgrade');
  expect(headers).not.toHaveProperty('x-drop');
});

test('closes the connection after a request with Upgrade, and announces it', async () => {
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
  const raw = await send(`${get}${upgrade}\r\n${get}\r\n`);
  expect(raw.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
  expect(raw).toMatch(/^Connection: close\r$/m);
});

test('answers Expect and does not forward it', async () => {
  const raw = await send(`${post}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`);
  expect(raw.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 100', 'HTTP/1.1 200']);
  expect(statusOf(await send(`${post}Expect: the-unexpected\r\nContent-Length: 2\r\n\r\n{}`))).toBe(200);
  expect(fixture.upstream.received.map(({ headers }) => headers.expect)).toEqual([undefined, undefined]);
});

test.each([
  ['head', get, '\r\n'],
  ['body', `${post}Content-Length: 10\r\n\r\n{`, '"a":1234}'],
])('returns 408 for half a %s, and forwards nothing when the rest follows', async (_, half, rest) => {
  await fixture.start({
    server: { headersTimeout: 200, requestTimeout: 400, connectionsCheckingInterval: 50 },
  });
  const { socket, received } = fixture.open(half);
  socket.allowHalfOpen = true;
  await until('the reply is complete', () => received().endsWith('}'));
  expect(errorOf(received())).toBe('request_timeout');
  socket.write(rest);
  expect(statusOf(await send(`${get}Connection: close\r\n\r\n`))).toBe(200);
  expect(fixture.upstream.received).toHaveLength(1);
});

test('forwards nothing of a body whose client disconnects during sending', async () => {
  const { socket } = fixture.open(`${post}Content-Length: 10\r\n\r\n{`);
  await until('it is sent', () => !socket.connecting && socket.writableLength === 0);
  socket.destroy();
  const { log } = fixture.gateway;
  await until('the gateway has logged the request', () => /"\/api\/login","status":4/.test(log.join('')));
  expect(fixture.upstream.received).toEqual([]);
});
