import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { json, text } from 'node:stream/consumers';
import type { ErrorEnvelope } from '@content-platform/contract';
import { statusOf } from '../../test/support/raw-http.ts';
import { until } from '../../test/support/wait.ts';
import { machineToken } from '../testing/tokens.ts';
import { useTestGateway } from '../testing/use-test-gateway.ts';

const limit = 16_384;
const asJson = { 'Content-Type': 'application/json' };
// The test sends megabytes, and the machine may be busy.
const fixture = useTestGateway({ timeouts: { drain: 60_000 } });

/** Sends the chunks and returns the reply. Without a Content-Length the body is chunked. */
async function post(headers: OutgoingHttpHeaders, ...chunks: string[]) {
  const request = httpRequest(`${fixture.gateway.origin}/api/login`, { method: 'POST', headers });
  request.on('error', () => undefined);
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  for (const chunk of chunks) request.write(chunk);
  request.end();
  const [response] = await answered;
  const { error } = (await json(response)) as ErrorEnvelope;
  return { status: response.statusCode, error, connection: response.headers.connection };
}
const rawPost = (length: number) =>
  `POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

test.each([
  ['text', { 'Content-Type': 'text/plain' }, 415],
  ['a form, where only JSON is accepted', { 'Content-Type': 'application/x-www-form-urlencoded' }, 415],
  ['JSON of another kind', { 'Content-Type': 'application/json-patch+json' }, 415],
  ['two types', { 'Content-Type': 'text/plain, application/json' }, 415],
  ['no type', { 'Content-Type': '' }, 415],
  ['gzip', { ...asJson, 'Content-Encoding': 'gzip' }, 415],
  ['gzip twice', { ...asJson, 'Content-Encoding': 'identity, gzip' }, 415],
  ['identity', { ...asJson, 'Content-Encoding': 'identity' }, 200],
  ['a charset', { 'Content-Type': 'Application/JSON; charset=utf-8' }, 200],
])('%s: %j returns %i', async (_, headers, status) => {
  expect(await post({ 'Content-Length': 2, ...headers }, '{}')).toMatchObject({ status });
  expect(fixture.upstream.received).toHaveLength(status === 200 ? 1 : 0);
});

test('accepts a POST without body and Content-Type', async () => {
  expect(await post({ 'Content-Length': 0 })).toMatchObject({ status: 200 });
});

const whole = Buffer.alloc(limit, '0123456789').toString();

test('accepts a body of the maximum size, with Content-Length and chunked', async () => {
  expect((await post({ ...asJson, 'Content-Length': limit }, whole)).status).toBe(200);
  expect((await post(asJson, ...whole.match(/.{1,99}/g)!)).status).toBe(200);
  for (const { body, headers } of fixture.upstream.received)
    expect([body, headers['content-length']]).toEqual([whole, String(limit)]);
});

test('refuses a body that is one byte too large and forwards nothing of it', async () => {
  expect(await post({ ...asJson, 'Content-Length': limit + 1 }, whole, 'x')).toMatchObject({ status: 413 });
  expect(await post(asJson, whole, 'x')).toMatchObject({ status: 413, error: 'payload_too_large' });
  expect(fixture.upstream.received).toEqual([]);
});

test('refuses a ninth body of megabytes while eight arrive', async () => {
  await fixture.start({ timeouts: { drain: 500 } });
  const head = rawPost(9_000_000).replace('/api/login', '/api/admin/devices/feedback');
  const token = `Authorization: Bearer ${machineToken('push', 'devices:manage')}`;
  const all = Array.from({ length: 9 }, () => fixture.open(head.replace('Host: x', `Host: x\r\n${token}`)));
  const refused = () => all.filter(({ received }) => received().includes('service_unavailable'));
  await until('one is refused', () => refused().length > 0);
  expect(refused()).toHaveLength(1);
  for (const { socket } of all) socket.destroy();
  const headers = { ...asJson, Authorization: token.replace('Authorization: ', '') };
  const next = { method: 'POST', headers, body: 'x'.repeat(2_000_000) };
  await until('there is room', async () => (await fixture.ask('/api/admin/devices/feedback', next)).ok);
});

test('sends the error to a client that sends 20 MB before it reads', async () => {
  const chunks = Array.from({ length: 20 }, () => 'x'.repeat(1_000_000));
  expect(await post(asJson, ...chunks)).toMatchObject({ status: 413, connection: 'close' });
  const counted = await post({ ...asJson, 'Content-Length': 20_000_000 }, ...chunks);
  expect(counted).toMatchObject({ status: 413, connection: 'close' });
  expect(await post({ 'Content-Type': 'text/plain' }, ...chunks)).toMatchObject({ status: 415 });
});

test('sends the error to a client that reads only after sending everything', async () => {
  const socket = fixture.connect().pause();
  const bytes = 30_000_000;
  await new Promise((resolve) => {
    socket.write(rawPost(bytes));
    socket.write(Buffer.alloc(bytes, 'x'), resolve);
  });
  expect(statusOf(await text(socket))).toBe(413);
});

test('replies immediately and drains the rest of the body for a limited time', async () => {
  await fixture.start({ timeouts: { drain: 500 } });
  const { socket, received } = fixture.open(rawPost(99_999_999));
  await until('the reply has arrived', () => received().includes('payload_too_large'));
  const sending = setInterval(() => socket.write('x'.repeat(100)), 20);
  await until('the connection ends', () => socket.destroyed);
  clearInterval(sending);
  expect(statusOf(received())).toBe(413);
});
