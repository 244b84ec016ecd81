import { describe, expect, test } from '@jest/globals';
import { sendRaw, statusOf } from '../../test/support/raw-http.ts';
import { rawGet, useTestGateway } from '../testing/use-test-gateway.ts';
import { mint } from '../testing/tokens.ts';

const fixture = useTestGateway();
const body = 'x'.repeat(1_000);

/** A service that answers `status` with a body; Node's server leaves the body out for HEAD. */
async function start(status = 200): Promise<void> {
  fixture.upstream.answer = (_request, response) =>
    response.writeHead(status, { 'Content-Length': body.length, ETag: '"x"', 'X-Cache': 'hit' }).end(body);
  await fixture.start(fixture.upstream.url);
}

const rawHead = (more = '') => rawGet(more).replace('GET', 'HEAD');
const hangUp = 'Connection: close\r\n';

/** Without headers that differ from one reply to the next, and those of the connection: fetch ends it after HEAD. */
async function headersOf(method: string, path: string, headers: Record<string, string> = {}) {
  const response = await fetch(fixture.gateway.origin + path, { method, headers });
  const {
    date: _,
    connection: __,
    'keep-alive': ___,
    'x-request-id': id,
    ...kept
  } = Object.fromEntries(response.headers);
  expect(id).toBeDefined();
  const text = await response.text();
  if (method === 'HEAD') expect(text).toBe('');
  return { status: response.status, ...kept };
}

async function expectAlike(path: string, headers?: Record<string, string>): Promise<void> {
  expect(await headersOf('HEAD', path, headers)).toEqual(await headersOf('GET', path, headers));
}

describe('what a service answers', () => {
  test.each([200, 404])('%i: its headers without its body', async (status) => {
    await start(status);
    await expectAlike('/.well-known/jwks.json');
    await expectAlike('/api/content/webform/1', { Authorization: `Bearer ${mint()}` });
    expect(fixture.upstream.received.map(({ method }) => method)).toEqual(['HEAD', 'GET', 'HEAD', 'GET']);
  });

  test('304 to a condition that holds', async () => {
    await fixture.start(fixture.upstream.url);
    fixture.upstream.answer = ({ headers }, response) =>
      response.writeHead(headers['if-none-match'] === '"x"' ? 304 : 200, { ETag: '"x"' }).end();
    expect(await headersOf('HEAD', '/.well-known/jwks.json', { 'If-None-Match': '"x"' })).toMatchObject({
      status: 304,
      etag: '"x"',
    });
  });

  test('no length where the service names none', async () => {
    await fixture.start(fixture.upstream.url);
    fixture.upstream.answer = (_request, response) => {
      response.write('in ');
      response.end('chunks');
    };
    const raw = await sendRaw(fixture.gateway.origin, rawHead() + rawGet(hangUp));
    expect(raw).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*?\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    expect(raw.split('\r\n\r\n')[0]).not.toMatch(/content-length|transfer-encoding/i);
  });

  test('nothing: the error of the gateway without its body', async () => {
    const { url } = await fixture.startTcp((socket) => socket.once('data', () => socket.destroy()));
    await fixture.start(url);
    await expectAlike('/.well-known/jwks.json');
    expect(await fixture.upstreamErrors()).toEqual({ broken: 2 });
  });
});

test('requests that are sent ahead get their replies in order, with bodies for GET alone', async () => {
  await start();
  const raw = await sendRaw(fixture.gateway.origin, (rawHead() + rawGet()).repeat(3) + rawHead(hangUp));
  const [before, ...replies] = raw.split('HTTP/1.1 200 OK\r\n');
  expect(before).toBe('');
  const bodies = replies.map((reply) => reply.slice(reply.indexOf('\r\n\r\n') + 4));
  expect(bodies).toEqual(['', body, '', body, '', body, '']);
  for (const reply of replies) expect(reply).toMatch(/^content-length: 1000\r$/im);
});

test('its connection to the service is kept for the next request', async () => {
  await start();
  for (let index = 0; index < 10; index += 1)
    for (const method of ['HEAD', 'GET'])
      expect((await headersOf(method, '/.well-known/jwks.json')).status).toBe(200);
  expect(fixture.upstream.connections).toBe(1);
});

test('a kept connection that turns out dead fails no HEAD', async () => {
  const { url, connections } = await fixture.startTcp((socket) =>
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n');
      socket.once('data', () => socket.destroy());
    }),
  );
  await fixture.start(url);
  for (let index = 0; index < 4; index += 1)
    expect((await headersOf('HEAD', '/.well-known/jwks.json')).status).toBe(200);
  expect(connections()).toBe(4);
});

describe('what the gateway answers itself', () => {
  test.each([
    ['health', '/health', 200],
    ['a document', '/api/openapi.json', 200],
    ['the page of the documents', '/api/docs', 200],
    ['a script of that page', '/api/docs/start.js', 200],
    ['a file that page has not', '/api/docs/nothing.js', 404],
    ['no endpoint', '/api/nothing', 404],
    ['a missing token', '/api/me', 401],
    ['a malformed target', '/api/%00', 400],
    ['an endpoint without GET', '/api/login', 405],
  ])('%s', async (_, path, status) => {
    await start();
    expect((await headersOf('HEAD', path)).status).toBe(status);
    if (status !== 405) await expectAlike(path);
    const raw = await sendRaw(
      fixture.gateway.origin,
      `HEAD ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    expect(raw.indexOf('\r\n\r\n')).toBe(raw.length - 4);
    expect(fixture.upstream.received).toEqual([]);
  });

  test('304 for a document that the client has', async () => {
    await start();
    const { etag } = (await headersOf('HEAD', '/api/openapi.json')) as { etag?: string };
    expect((await headersOf('HEAD', '/api/openapi.json', { 'If-None-Match': etag! })).status).toBe(304);
  });
});

test('a body is refused as it is for GET', async () => {
  await start();
  const raw = await sendRaw(
    fixture.gateway.origin,
    rawHead('Content-Length: 2\r\nConnection: close\r\n') + '{}',
  );
  expect(statusOf(raw)).toBe(400);
  expect(fixture.upstream.received).toEqual([]);
});

test.each(['/api/identity/login', '/api/identity/login/callback'])(
  '%s changes something with GET: HEAD is 405',
  async (path) => {
    await start();
    expect(await headersOf('HEAD', path)).toMatchObject({ status: 405, allow: 'GET' });
    expect(fixture.upstream.received).toEqual([]);
  },
);
