import { describe, expect, test } from '@jest/globals';
import { mint } from '../testing/tokens.ts';
import { rawGet, useTestGateway } from '../testing/use-test-gateway.ts';

const fixture = useTestGateway({});
const body = 'x'.repeat(1_000);
const rawHead = (more = '') => rawGet(more).replace('GET', 'HEAD');
const hangUp = 'Connection: close\r\n';

/** Makes the service return `status` with a body. For HEAD, Node's server omits the body. */
function answerWith(status: number): void {
  fixture.upstream.answer = (_request, response) =>
    response.writeHead(status, { 'Content-Length': body.length, ETag: '"x"', 'X-Cache': 'hit' }).end(body);
}

/** Returns status and headers, without headers that differ from reply to reply; fetch closes connections after HEAD. */
async function headOf(method: string, path: string, headers: Record<string, string> = {}) {
  const response = await fixture.ask(path, { method, headers });
  const changing = ['date', 'connection', 'keep-alive', 'x-request-id'];
  const kept = [...response.headers].filter(([name]) => !changing.includes(name));
  const text = await response.text();
  if (method === 'HEAD') expect(text).toBe('');
  return { status: response.status, ...Object.fromEntries(kept) };
}

async function expectHeadLikeGet(path: string, headers?: Record<string, string>): Promise<void> {
  expect(await headOf('HEAD', path, headers)).toEqual(await headOf('GET', path, headers));
}

describe('replies of a service', () => {
  test.each([200, 404])('%i: returns the headers without the body', async (status) => {
    answerWith(status);
    await expectHeadLikeGet('/.well-known/jwks.json');
    await expectHeadLikeGet('/api/content/webform/1', { Authorization: `Bearer ${mint()}` });
    expect(fixture.upstream.received.map(({ method }) => method)).toEqual(['HEAD', 'GET', 'HEAD', 'GET']);
  });

  test('omits Content-Length if the service does', async () => {
    fixture.upstream.answer = (_request, response) => {
      response.write('in ');
      response.end('chunks');
    };
    const raw = await fixture.send(rawHead() + rawGet(hangUp));
    expect(raw).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*?\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    expect(raw.split('\r\n\r\n')[0]).not.toMatch(/content-length|transfer-encoding/i);
  });

  test("no reply: returns the gateway's error without its body", async () => {
    const { url } = await fixture.startTcp((socket) => socket.once('data', () => socket.destroy()));
    await fixture.start({ services: { auth: url } });
    await expectHeadLikeGet('/.well-known/jwks.json');
    expect(await fixture.upstreamErrors()).toEqual({ broken: 2 });
  });
});

test('pipelined requests get their replies in order, bodies for GET alone', async () => {
  answerWith(200);
  const raw = await fixture.send((rawHead() + rawGet()).repeat(3) + rawHead(hangUp));
  const [before, ...replies] = raw.split('HTTP/1.1 200 OK\r\n');
  expect(before).toBe('');
  const bodies = replies.map((reply) => reply.slice(reply.indexOf('\r\n\r\n') + 4));
  expect(bodies).toEqual(['', body, '', body, '', body, '']);
  for (const reply of replies) expect(reply).toMatch(/^content-length: 1000\r$/im);
});

test('keeps the connection to the service for the next request', async () => {
  await fixture.start();
  for (const method of ['HEAD', 'GET', 'HEAD', 'GET'])
    expect((await headOf(method, '/.well-known/jwks.json')).status).toBe(200);
  expect(fixture.upstream.connections).toBe(1);
});

test.each([
  ['/health', 200],
  ['/api/openapi.json', 200],
  ['/api/docs', 200],
  ['/api/docs/start.js', 200],
  ['/api/docs/nothing.js', 404],
  ['/api/nothing', 404],
  ['/api/me', 401],
  ['/api/%00', 400],
])('the gateway returns for %s status %i and no body', async (path, status) => {
  expect((await headOf('HEAD', path)).status).toBe(status);
  await expectHeadLikeGet(path);
  const raw = await fixture.send(rawHead(hangUp).replace('/.well-known/jwks.json', path));
  expect(raw.indexOf('\r\n\r\n')).toBe(raw.length - 4);
  expect(fixture.upstream.received).toEqual([]);
});

test.each([
  ['/api/login', 'POST'],
  ['/api/identity/login', 'GET'],
  ['/api/identity/login/callback', 'GET'],
])('returns 405 if GET is not supported or changes state: %s', async (path, allow) => {
  expect(await headOf('HEAD', path)).toMatchObject({ status: 405, allow });
  expect(fixture.upstream.received).toEqual([]);
});
