import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { endpoints as all, upload, type ErrorEnvelope } from '@content-platform/contract';
import { until } from '../../test/support/wait.ts';
import { useTestGateway } from '../testing/use-test-gateway.ts';
import { mint } from '../testing/tokens.ts';

const fixture = useTestGateway();
const limit = upload.body.maxBytes;
/** Without a time of its own. */
const endpoints = all.map((endpoint) =>
  endpoint === upload ? { ...upload, replyWithinSeconds: 0 } : endpoint,
);
const megabyte = Buffer.alloc(1024 * 1024);

/** What has arrived at the service, and how it ended there. */
interface Arrived {
  bytes: number;
  ended: boolean;
  broke: boolean;
  /** It never answers. */
  silent: boolean;
}

/** A gateway in front of a service that takes uploads and answers each when it has all of it. */
async function start({ answerAt = Infinity, drain = 60_000 } = {}): Promise<Arrived> {
  const arrived: Arrived = { bytes: 0, ended: false, broke: false, silent: false };
  const server = createServer((request, response) => {
    const answer = () => arrived.silent || response.headersSent || response.end('{"ok":true}');
    request.on('data', (chunk: Buffer) => {
      arrived.bytes += chunk.length;
      if (arrived.bytes >= answerAt) answer();
    });
    request.once('end', () => {
      arrived.ended = true;
      answer();
    });
    request.once('error', () => (arrived.broke = true));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  fixture.closeLater(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as { port: number };
  const services = { 'media-upload': `http://127.0.0.1:${port}` };
  const timeouts = { response: 3_000, drain };
  await fixture.start(fixture.upstream.url, { services, endpoints, timeouts });
  return arrived;
}

function begin(headers: Record<string, string | number> = {}): ClientRequest {
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

test('a body goes on as it comes: it is never held', async () => {
  const arrived = await start();
  const request = begin();
  for (let sent = 1; sent <= 9; sent += 1) {
    request.write(megabyte);
    await until('it has arrived', () => arrived.bytes === sent * megabyte.length);
  }
  const answered = answerOf(request.end());
  expect(await answered).toMatchObject({ status: 200 });
  expect(arrived).toMatchObject({ bytes: 9 * megabyte.length, ended: true });
});

test('too large by its length: nothing of it arrives', async () => {
  const arrived = await start();
  const request = begin({ 'Content-Length': limit + 1 });
  request.write(megabyte);
  expect(await answerOf(request)).toEqual({ status: 413, error: 'payload_too_large' });
  expect(arrived.bytes).toBe(0);
  request.destroy();
});

test('too large when it is counted: the service sees it break off, not end', async () => {
  const arrived = await start();
  const request = begin();
  const answered = answerOf(request);
  for (let sent = 0; sent < 12; sent += 1) request.write(megabyte);
  expect(await answered).toEqual({ status: 413, error: 'payload_too_large' });
  await until('the service knows', () => arrived.broke);
  expect(arrived.ended).toBe(false);
  expect(arrived.bytes).toBeLessThanOrEqual(limit);
  request.destroy();
});

test('a client that goes away in the middle: the service sees it break off, not end', async () => {
  const arrived = await start();
  const request = begin();
  request.write(megabyte);
  await until('it has arrived', () => arrived.bytes === megabyte.length);
  request.destroy();
  await until('the service knows', () => arrived.broke);
  expect(arrived.ended).toBe(false);
});

test('who sends slowly has the time for it', async () => {
  const arrived = await start();
  const request = begin();
  const answered = answerOf(request);
  // Longer in all than the service may take for its reply.
  for (let sent = 1; sent <= 14; sent += 1) {
    request.write('piece');
    await until('it has arrived', () => arrived.bytes === sent * 5);
    await sleep(300);
  }
  request.end();
  expect(await answered).toMatchObject({ status: 200 });
});

test('a service that stops reading is to blame, not the client that could send no more', async () => {
  let service: Socket | undefined;
  const { url } = await fixture.startTcp((socket) => (service = socket.pause()));
  // More than the buffers of the connections on the way hold.
  const large = {
    ...upload,
    replyWithinSeconds: 0,
    body: { ...upload.body, maxBytes: 64 * megabyte.length },
  };
  await fixture.start(fixture.upstream.url, {
    services: { 'media-upload': url },
    endpoints: all.map((endpoint) => (endpoint === upload ? large : endpoint)),
    timeouts: { response: 3_000, drain: 60_000 },
  });
  const request = begin();
  const answered = answerOf(request);
  for (let sent = 0; sent < 60; sent += 1) request.write(megabyte);
  expect(await answered).toEqual({ status: 504, error: 'gateway_timeout' });
  expect(await fixture.upstreamErrors('media-upload')).toEqual({ timeout: 1 });
  expect(fixture.gateway.log.join('')).toContain('nothing came for 3000 ms');
  request.destroy();
  service!.resume();
  await until('the request to the service has ended', () => service!.destroyed);
});

/** The sums in seconds and the counts of all observed uploads: of whole requests, and from their last byte on. */
async function observed() {
  const text = await fixture.gateway.metrics.registry.metrics();
  const total = (series: string) =>
    [...text.matchAll(new RegExp(`^${series}\\{.*route="/api/upload".*\\} (\\S+)$`, 'gm'))].reduce(
      (sum, [, value]) => sum + Number(value),
      0,
    );
  return {
    requests: {
      seconds: total('http_request_duration_seconds_sum'),
      count: total('http_request_duration_seconds_count'),
    },
    replies: {
      seconds: total('http_response_duration_seconds_sum'),
      count: total('http_response_duration_seconds_count'),
    },
  };
}

test('the time of an upload without the time in which the client sent it is observed', async () => {
  const arrived = await start();
  expect((await observed()).replies.count).toBe(0);
  const request = begin();
  const answered = answerOf(request);
  request.write('piece');
  await until('it has arrived', () => arrived.bytes === 5);
  await sleep(2_000);
  request.end('piece');
  expect(await answered).toMatchObject({ status: 200 });
  const { requests, replies } = await until('it is observed', async () => {
    const all = await observed();
    return all.requests.count === 1 && all;
  });
  expect(replies.count).toBe(1);
  // The client took two seconds to send the rest, however late the reply was.
  expect(requests.seconds).toBeGreaterThan(replies.seconds + 1);
});

test('an upload that is refused before its last byte has no such time', async () => {
  await start({ drain: 100 });
  const request = begin({ 'Content-Length': limit + 1 });
  request.write(megabyte);
  expect(await answerOf(request)).toMatchObject({ status: 413 });
  request.destroy();
  const { replies } = await until('it is observed', async () => {
    const all = await observed();
    return all.requests.count === 1 && all;
  });
  expect(replies.count).toBe(0);
});

test('who stops sending is told so, and the service sees it break off', async () => {
  const arrived = await start();
  const request = begin();
  request.write('piece');
  expect(await answerOf(request)).toEqual({ status: 408, error: 'request_timeout' });
  expect(await fixture.upstreamErrors('media-upload')).toEqual({});
  await until('the service knows', () => arrived.broke);
  expect(arrived.ended).toBe(false);
  request.destroy();
});

test('a service that takes too long with a whole body: 504', async () => {
  const arrived = await start();
  arrived.silent = true;
  const request = begin();
  request.end('piece');
  expect(await answerOf(request)).toEqual({ status: 504, error: 'gateway_timeout' });
});

test('a reply before the body is whole reaches the client', async () => {
  await start({ answerAt: 1 });
  const request = begin();
  request.write(megabyte);
  expect(await answerOf(request)).toMatchObject({ status: 200 });
  request.destroy();
});

test('who goes on after the reply is listened to for a while, and then no more', async () => {
  const arrived = await start({ answerAt: 1, drain: 5_000 });
  const head = `POST /api/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${mint()}\r\n`;
  const socket = fixture.connect().setEncoding('latin1');
  socket.on('error', () => undefined);
  let raw = '';
  socket.on('data', (piece: string) => (raw += piece));
  const chunked = 'Content-Type: multipart/form-data; boundary=x\r\nTransfer-Encoding: chunked\r\n\r\n';
  socket.write(`${head}${chunked}1\r\na\r\n`);
  await until('it is answered', () => raw.endsWith('{"ok":true}'));
  expect(raw).toMatch(/^HTTP\/1\.1 200 [^]*^Connection: close\r$/im);
  // More than lies in the buffers on the way, so that somebody must be reading it.
  for (let sent = 0; sent < 24; sent += 1) socket.write(`100000\r\n${megabyte.toString('latin1')}\r\n`);
  await until('all of it is taken', () => socket.writableLength === 0);
  expect(socket.readyState).toBe('open');
  const trickle = setInterval(() => socket.write('1\r\na\r\n'), 50);
  await until('the connection ends', () => socket.readyState !== 'open');
  clearInterval(trickle);
  expect(arrived.ended).toBe(false);
});

test('malformed in the middle: answered once, and the connection ends, for nothing more can be read on it', async () => {
  const arrived = await start();
  const head = `POST /api/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${mint()}\r\n`;
  const body =
    'Content-Type: multipart/form-data; boundary=x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n';
  const socket = fixture.connect().setEncoding('latin1');
  let raw = '';
  socket.on('data', (piece: string) => (raw += piece)).write(head + body);
  await until('the service has the first chunk', () => arrived.bytes === 5);
  socket.write('no size\r\n');
  await until('it is answered', () => raw.endsWith('}'));
  socket.destroy();
  expect(raw).toMatch(/^HTTP\/1\.1 400 [^]*^Connection: close\r$/m);
  expect(arrived.ended).toBe(false);
});
