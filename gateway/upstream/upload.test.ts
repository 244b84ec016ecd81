import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { endpoints as all, upload, type ErrorEnvelope } from '@content-platform/contract';
import { startHttpServer } from '../../test/support/http-server.ts';
import { until } from '../../test/support/wait.ts';
import type { TestGatewayOptions } from '../testing/gateway.ts';
import { mint } from '../testing/tokens.ts';
import { useTestGateway } from '../testing/use-test-gateway.ts';

const fixture = useTestGateway();
const limit = upload.body.maxBytes;
const megabyte = Buffer.alloc(1024 * 1024);
const rawHead = [
  'POST /api/upload HTTP/1.1',
  'Host: x',
  `Authorization: Bearer ${mint()}`,
  'Content-Type: multipart/form-data; boundary=x',
  'Transfer-Encoding: chunked',
  '\r\n',
].join('\r\n');

/** Starts a gateway before media-upload at `url`. Uploads have no longer limit than other requests. */
function startBefore(url: string, options: Partial<TestGatewayOptions>, maxBytes: number = limit) {
  const changed = { ...upload, replyWithinSeconds: 0, body: { ...upload.body, maxBytes } };
  const endpoints = all.map((endpoint) => (endpoint === upload ? changed : endpoint));
  return fixture.start({ services: { 'media-upload': url }, endpoints, ...options });
}

/** What the service has received of an upload. If a test sets `sendsNoReply` before the upload, it never replies. */
interface Arrived {
  bytes: number;
  ended: boolean;
  broke: boolean;
  sendsNoReply: boolean;
  sockets: Set<Socket>;
}

/** Starts a gateway before a service that answers each upload when it has `answerAt` bytes, or all of it. */
async function start({ answerAt = Infinity, drain = 60_000, response = 15_000 } = {}): Promise<Arrived> {
  const arrived: Arrived = { bytes: 0, ended: false, broke: false, sendsNoReply: false, sockets: new Set() };
  const server = await startHttpServer((request, reply) => {
    arrived.sockets.add(request.socket);
    const answer = () => arrived.sendsNoReply || reply.headersSent || reply.end('{"ok":true}');
    request.on('data', (chunk: Buffer) => {
      arrived.bytes += chunk.length;
      if (arrived.bytes >= answerAt) answer();
    });
    request.once('end', () => {
      arrived.ended = true;
      answer();
    });
    request.once('error', () => (arrived.broke = true));
  });
  fixture.closeLater(server.close);
  await startBefore(server.origin, { timeouts: { response, drain } });
  return arrived;
}

function beginUpload(headers: Record<string, string | number> = {}): ClientRequest {
  const request = httpRequest(`${fixture.gateway.origin}/api/upload`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${mint()}`,
      'Content-Type': 'multipart/form-data; boundary=x',
      ...headers,
    },
  });
  request.on('error', () => undefined);
  return request;
}

async function answerOf(request: ClientRequest) {
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const body = (await json(response)) as Partial<ErrorEnvelope>;
  return { status: response.statusCode, error: body.error };
}

test('streams each body on a connection of its own, without buffering it', async () => {
  const arrived = await start();
  const request = beginUpload();
  for (let sent = 1; sent <= 9; sent += 1) {
    request.write(megabyte);
    await until('it has arrived', () => arrived.bytes === sent * megabyte.length);
  }
  expect(await answerOf(request.end())).toMatchObject({ status: 200 });
  expect(arrived).toMatchObject({ bytes: 9 * megabyte.length, ended: true });
  expect(await answerOf(beginUpload().end('x'))).toMatchObject({ status: 200 });
  expect(arrived.sockets.size).toBe(2);
});

test('forwards nothing of a body with a too large Content-Length', async () => {
  const arrived = await start();
  const request = beginUpload({ 'Content-Length': limit + 1 });
  request.write(megabyte);
  expect(await answerOf(request)).toEqual({ status: 413, error: 'payload_too_large' });
  expect(arrived.bytes).toBe(0);
  request.destroy();
});

test('aborts the request to the service when a chunked body gets too large', async () => {
  const arrived = await start();
  const request = beginUpload();
  const answered = answerOf(request);
  for (let sent = 0; sent < 12; sent += 1) request.write(megabyte);
  expect(await answered).toEqual({ status: 413, error: 'payload_too_large' });
  await until('the service notices the end', () => arrived.broke);
  expect(arrived.ended).toBe(false);
  expect(arrived.bytes).toBeLessThanOrEqual(limit);
  request.destroy();
});

test('aborts the request to the service when the client disconnects', async () => {
  const arrived = await start();
  const request = beginUpload();
  request.write(megabyte);
  await until('it has arrived', () => arrived.bytes === megabyte.length);
  request.destroy();
  await until('the service notices the end', () => arrived.broke);
  expect(arrived.ended).toBe(false);
});

test('waits for a client that sends slowly', async () => {
  const arrived = await start({ response: 3_500 });
  const request = beginUpload();
  const answered = answerOf(request);
  // In total longer than the limit of the service's reply.
  for (let sent = 1; sent <= 7; sent += 1) {
    request.write('chunk');
    await until('it has arrived', () => arrived.bytes === sent * 5);
    await sleep(600);
  }
  request.end();
  expect(await answered).toMatchObject({ status: 200 });
});

test('returns 504 if the service stops reading the body', async () => {
  let service: Socket | undefined;
  const { url } = await fixture.startTcp((socket) => (service = socket.pause()));
  // More than the buffers of the connections can hold.
  await startBefore(url, { timeouts: { response: 3_000, drain: 60_000 } }, 64 * megabyte.length);
  const request = beginUpload();
  const answered = answerOf(request);
  for (let sent = 0; sent < 60; sent += 1) request.write(megabyte);
  expect(await answered).toEqual({ status: 504, error: 'gateway_timeout' });
  expect(await fixture.upstreamErrors('media-upload')).toEqual({ timeout: 1 });
  expect(fixture.gateway.log.join('')).toContain('nothing arrived for 3000 ms');
  request.destroy();
  service!.resume();
  await until('the request to the service has ended', () => service!.destroyed);
});

/** Waits until the upload is observed. Returns the seconds of the whole request, and of the part after its last byte. */
async function observed(): Promise<{ whole: number; reply: number | undefined }> {
  const labels = '\\{service="gateway",method="POST",route="/api/upload",status="\\d+"\\}';
  return until('the upload is observed', async () => {
    const text = await fixture.gateway.metrics.registry.metrics();
    const seconds = (name: string) => {
      const isCounted = new RegExp(`^http_${name}_duration_seconds_count${labels} 1$`, 'm').test(text);
      const sums = text.matchAll(new RegExp(`^http_${name}_duration_seconds_sum${labels} (\\S+)$`, 'gm'));
      return isCounted ? Math.max(...[...sums].map(([, sum]) => Number(sum))) : undefined;
    };
    const whole = seconds('request');
    return whole !== undefined && { whole, reply: seconds('response') };
  });
}

test('observes an upload also without its sending time, which does not make it slow', async () => {
  const arrived = await start();
  const request = beginUpload();
  const answered = answerOf(request);
  request.write('chunk');
  await until('it has arrived', () => arrived.bytes === 5);
  fixture.skipTime(3_600_000);
  request.end('chunk');
  expect(await answered).toMatchObject({ status: 200 });
  const { whole, reply } = await observed();
  expect(whole).toBeGreaterThan(3_600);
  expect(reply).toBe(0);
  expect(fixture.gateway.slow).toEqual([]);
});

test('observes no processing time of an upload that is refused before its last byte', async () => {
  await start({ drain: 100 });
  const request = beginUpload({ 'Content-Length': limit + 1 });
  request.write(megabyte);
  expect(await answerOf(request)).toMatchObject({ status: 413 });
  request.destroy();
  expect((await observed()).reply).toBeUndefined();
});

test('returns 408 if the client stops sending, and aborts the request to the service', async () => {
  const arrived = await start({ response: 3_000 });
  const request = beginUpload();
  request.write('chunk');
  expect(await answerOf(request)).toEqual({ status: 408, error: 'request_timeout' });
  expect(await fixture.upstreamErrors('media-upload')).toEqual({});
  await until('the service notices the end', () => arrived.broke);
  expect(arrived.ended).toBe(false);
  request.destroy();
});

test('returns 504 if the service takes too long after the last byte', async () => {
  const arrived = await start({ response: 3_000 });
  arrived.sendsNoReply = true;
  const request = beginUpload();
  request.end('chunk');
  expect(await answerOf(request)).toEqual({ status: 504, error: 'gateway_timeout' });
});

test('passes on a reply that comes before the end of the body, and drains the rest', async () => {
  const arrived = await start({ answerAt: 1 });
  const { socket, received } = fixture.open(`${rawHead}1\r\na\r\n`);
  await until('the reply has arrived', () => received().endsWith('{"ok":true}'));
  expect(received()).toMatch(/^HTTP\/1\.1 200 [^]*^Connection: close\r$/im);
  // More than the buffers of the connections can hold, so the gateway must be reading it.
  for (let sent = 0; sent < 24; sent += 1) socket.write(`100000\r\n${megabyte.toString('latin1')}\r\n`);
  await until('all of it is read', () => socket.writableLength === 0);
  expect(socket.readyState).toBe('open');
  expect(arrived.ended).toBe(false);
});

test('counts a reply that the service cuts off', async () => {
  const server = await startHttpServer((request, reply) => {
    request.resume().once('end', () => {
      reply.writeHead(201, { 'Content-Length': 9 }).write('{"id"');
      setTimeout(() => reply.destroy(), 500);
    });
  });
  fixture.closeLater(server.close);
  await startBefore(server.origin, {});
  await expect(answerOf(beginUpload().end('x'))).rejects.toThrow('aborted');
  await until('it is counted', async () => (await fixture.upstreamErrors('media-upload'))['broken'] === 1);
});

test('disconnects a client that keeps sending after the reply', async () => {
  await start({ answerAt: 1, drain: 100 });
  const { socket, received } = fixture.open(`${rawHead}1\r\na\r\n`);
  await until('the reply has arrived', () => received().endsWith('{"ok":true}'));
  const sending = setInterval(() => socket.write('1\r\na\r\n'), 50);
  await until('the connection ends', () => socket.readyState !== 'open');
  clearInterval(sending);
});

test('returns one error for a body that becomes malformed, and closes the connection', async () => {
  const arrived = await start();
  const { socket, received } = fixture.open(`${rawHead}5\r\nabcde\r\n`);
  await until('the service has the first chunk', () => arrived.bytes === 5);
  socket.write('no size\r\n');
  await until('the reply has arrived', () => received().endsWith('}'));
  expect(received()).toMatch(/^HTTP\/1\.1 400 [^]*^Connection: close\r$/m);
  expect(arrived.ended).toBe(false);
});
