import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../testing/gateway.ts';
import { startUpstream, type RecordingUpstream } from '../testing/upstream.ts';

let upstream: RecordingUpstream;
const gateways: TestGateway[] = [];

async function start(options: Partial<TestGatewayOptions> = {}): Promise<TestGateway> {
  const services = { auth: upstream.url, 'content-cache': upstream.url };
  const gateway = await startGateway({ services, ...options });
  gateways.push(gateway);
  return gateway;
}
beforeAll(async () => void (upstream = await startUpstream()));
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
});
afterAll(() => upstream.close());

const origin = 'https://app.example.com';
const ask = async (path: string, init: RequestInit) => {
  const gateway = await start({ corsOrigins: [origin] });
  return fetch(gateway.origin + path, init);
};
const preflight = (from: string, method = 'GET') => ({
  method: 'OPTIONS',
  headers: {
    Origin: from,
    'Access-Control-Request-Method': method,
    'Access-Control-Request-Headers': 'authorization',
  },
});

test('a preflight from an allowed origin is answered here', async () => {
  const { status, headers } = await ask('/api/content/webform/1', preflight(origin));
  expect(status).toBe(204);
  expect(headers.get('access-control-allow-origin')).toBe(origin);
  expect(headers.get('access-control-allow-methods')).toBe('GET, HEAD');
  expect(headers.get('access-control-allow-headers')).toBe(
    'Authorization, Content-Type, X-Request-Id, If-None-Match',
  );
  expect(headers.get('access-control-max-age')).toBe('600');
  expect(headers.get('access-control-allow-credentials')).toBeNull();
  expect(headers.get('vary')).toBe('Origin');
  expect(upstream.received).toEqual([]);
});

test.each([
  'https://evil.example.com',
  'null',
  'http://app.example.com',
  `${origin}.evil.com`,
  `${origin}:8443`,
])('an origin %s gets nothing', async (from) => {
  const refused = await ask('/api/me', preflight(from));
  expect(refused.status).toBe(405);
  const simple = await ask('/.well-known/jwks.json', { headers: { Origin: from } });
  for (const { headers } of [refused, simple]) {
    expect(headers.get('access-control-allow-origin')).toBeNull();
    expect(headers.get('vary')).toBe('Origin');
  }
});

test('a preflight for a path that does not exist is 404; OPTIONS that is none is 405', async () => {
  expect((await ask('/api/nothing', preflight(origin))).status).toBe(404);
  const plain = await ask('/api/me', { method: 'OPTIONS', headers: { Origin: origin } });
  expect([plain.status, plain.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});

test.each(['/.well-known/jwks.json', '/api/me', '/api/nothing'])(
  '%s can be read by the page',
  async (path) => {
    const { headers } = await ask(path, { headers: { Origin: origin } });
    expect(headers.get('access-control-allow-origin')).toBe(origin);
    expect(headers.get('access-control-expose-headers')).toBe('ETag, Retry-After, X-Cache, X-Request-Id');
  },
);

test('nobody is allowed by default', async () => {
  const gateway = await start();
  const { headers } = await fetch(`${gateway.origin}/health`, { headers: { Origin: origin } });
  expect(headers.get('access-control-allow-origin')).toBeNull();
});
