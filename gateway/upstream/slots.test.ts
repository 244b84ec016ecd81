import { expect, jest, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { userCaller } from '../../test/support/user-caller.ts';
import { until } from '../../test/support/wait.ts';
import { mint } from '../testing/tokens.ts';
import { sayOk } from '../testing/upstream.ts';
import { errorOf, rawGet, useTestGateway } from '../testing/use-test-gateway.ts';

const fixture = useTestGateway();
const maxRequests = 4;

test('limits the requests at a service, queues as many, and refuses more', async () => {
  const held: ServerResponse[] = [];
  fixture.upstream.answer = (_request, response) => void held.push(response);
  await fixture.start({ maxRequests });
  const replies = Array.from({ length: 2 * maxRequests + 3 }, () => fixture.get());
  await until('three are refused', async () => (await fixture.upstreamErrors())['busy'] === 3);
  await until('the first are at the service', () => held.length === maxRequests);
  expect(await errorOf(await fixture.get())).toEqual([503, 'service_unavailable']);
  expect(held).toHaveLength(maxRequests);
  for (let index = 0; index < 2 * maxRequests; index += 1) {
    await until('the next request is at the service', () => held.length > index);
    held[index]!.end('{}');
  }
  const statuses = (await Promise.all(replies)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(2 * maxRequests);
});

test('refuses a request that waits too long in the queue', async () => {
  let uploads = 0;
  const { url } = await fixture.startTcp((socket) => socket.once('data', () => (uploads += 1)));
  await fixture.start({ maxRequests: 1, services: { 'media-upload': url }, timeouts: { response: 300 } });
  const headers = { Authorization: `Bearer ${mint()}` };
  // An upload holds the only slot: its reply may take longer than a request may wait.
  const upload = { ...headers, 'Content-Type': 'multipart/form-data; boundary=x' };
  const hangUp = new AbortController();
  const init = { method: 'POST', headers: upload, body: 'x', signal: hangUp.signal };
  const held = fixture.ask('/api/upload', init).catch(() => undefined);
  await until('the upload is at the service', () => uploads === 1);
  const response = await fixture.ask('/api/media/1/thumb', { headers });
  expect(await errorOf(response)).toEqual([503, 'service_unavailable']);
  expect(await fixture.upstreamErrors('media-upload')).toEqual({ busy: 1 });
  hangUp.abort();
  await held;
});

test('does not send a waiting request of a client that disconnects, and frees its queue position', async () => {
  fixture.upstream.answer = () => undefined;
  await fixture.start({ maxRequests: 1 });
  const { socket } = fixture.open(rawGet());
  await until('the first is at the service', () => fixture.upstream.received.length === 1);
  for (const [index, client] of [fixture.connect(), socket].entries()) {
    client.write(rawGet() + rawGet());
    await until('one is refused', async () => (await fixture.upstreamErrors())['busy'] === index + 1);
    client.destroy();
    await until('it is logged', () => fixture.gateway.log.splice(0).join('').includes('"status":499'));
  }
  fixture.upstream.answer = sayOk;
  expect((await fixture.get()).status).toBe(200);
  expect(fixture.upstream.received).toHaveLength(2);
});

test('takes no slot for a client that disconnects while its token is checked', async () => {
  const goOn = Promise.withResolvers<void>();
  const verify = jest.fn(() => goOn.promise.then(() => userCaller(1)));
  await fixture.start({ maxRequests, tokens: { verify } });
  const request = 'GET /api/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n';
  const connections = Array.from({ length: 3 * maxRequests }, () => fixture.open(request));
  await until('all tokens are being checked', () => verify.mock.calls.length === connections.length);
  for (const { socket } of connections) socket.destroy();
  const ended = () => fixture.gateway.log.filter((line) => line.includes('"status":499')).length;
  await until('the gateway has noticed', () => ended() === connections.length);
  goOn.resolve();
  expect((await fixture.ask('/api/me', { headers: { Authorization: 'Bearer x' } })).status).toBe(200);
  expect(fixture.upstream.received).toHaveLength(1);
});

test.each([
  ['answered', 200, undefined],
  ['failed', 500, 2 * maxRequests - 1],
])('requests that have %s free their slot even if their client does not read', async (_, status, broken) => {
  const large = Buffer.alloc(5_000_000, 'x');
  fixture.upstream.answer = ({ url }, response) => {
    if (url!.endsWith('large')) response.end(large);
    else response.writeHead(status).end('{}');
  };
  await fixture.start({ maxRequests });
  // The other replies wait behind the large reply.
  const requests = rawGet().replace(' HTTP', '?large HTTP') + rawGet().repeat(2 * maxRequests - 1);
  fixture.connect().pause().write(requests);
  await until('all have ended', async () => {
    const errors = await fixture.upstreamErrors();
    return fixture.upstream.received.length === 2 * maxRequests && errors['broken'] === broken;
  });
  fixture.upstream.answer = (_request, response) => response.end('{}');
  expect((await fixture.get()).status).toBe(200);
});
