import { expect, test } from '@jest/globals';
import { useTestGateway } from '../testing/use-test-gateway.ts';

const origin = 'https://app.example.com';
const fixture = useTestGateway({ corsOrigins: [origin] });
const { ask } = fixture;

const preflight = (from: string) => ({
  method: 'OPTIONS',
  headers: {
    Origin: from,
    'Access-Control-Request-Method': 'GET',
    'Access-Control-Request-Headers': 'authorization',
  },
});

test('answers a preflight from an allowed origin without calling the service', async () => {
  const { status, headers } = await ask('/api/content/webform/1', preflight(origin));
  expect(status).toBe(204);
  expect(Object.fromEntries(headers)).toMatchObject({
    'access-control-allow-origin': origin,
    'access-control-allow-methods': 'GET, HEAD',
    'access-control-allow-headers':
      'Authorization, Content-Type, Traceparent, Tracestate, Baggage, X-Request-Id, If-None-Match',
    'access-control-max-age': '600',
    vary: 'Origin',
  });
  expect(headers.get('access-control-allow-credentials')).toBeNull();
  expect(fixture.upstream.received).toEqual([]);
});

test.each([
  'https://evil.example.com',
  'null',
  'http://app.example.com',
  `${origin}.evil.com`,
  `${origin}:8443`,
])('an origin %s gets no CORS headers', async (from) => {
  const refused = await ask('/api/me', preflight(from));
  expect(refused.status).toBe(405);
  const simple = await fixture.get({ headers: { Origin: from } });
  for (const { headers } of [refused, simple]) {
    expect(headers.get('access-control-allow-origin')).toBeNull();
    expect(headers.get('vary')).toBe('Origin');
  }
});

test('returns 404 for a preflight of an unknown path and 405 for other OPTIONS', async () => {
  expect((await ask('/api/nothing', preflight(origin))).status).toBe(404);
  const plain = await ask('/api/me', { method: 'OPTIONS', headers: { Origin: origin } });
  expect([plain.status, plain.headers.get('allow')]).toEqual([405, 'DELETE, GET, HEAD']);
});

const readable = 'Content-Disposition, Content-Range, ETag, Retry-After, X-Cache, X-Request-Id';
test.each(['/.well-known/jwks.json', '/api/me', '/api/nothing'])(
  '%s can be read by the page',
  async (path) => {
    const { headers } = await ask(path, { headers: { Origin: origin } });
    expect(headers.get('access-control-allow-origin')).toBe(origin);
    expect(headers.get('access-control-expose-headers')).toBe(readable);
  },
);

test('allows no origin by default', async () => {
  await fixture.start();
  const { headers } = await ask('/health', { headers: { Origin: origin } });
  expect(headers.get('access-control-allow-origin')).toBeNull();
});

test.each(['/.well-known/jwks.json', '/api/nothing', '/api/me', '/api/%00', '/health'])(
  '%s carries the security headers',
  async (path) => {
    const { headers } = await ask(path);
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(Object.fromEntries(headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'x-request-id': expect.any(String),
    });
    expect(headers.get('x-powered-by')).toBeNull();
    expect(headers.get('strict-transport-security')).toBeNull();
  },
);

test.each([
  [{}, 'max-age=31536000'],
  [{ hstsIncludeSubdomains: true }, 'max-age=31536000; includeSubDomains'],
])('sends HSTS if the public URL is https, with %j', async (options, expected) => {
  await fixture.start({ publicUrl: 'https://api.example.com', ...options });
  const { headers } = await ask('/api/nothing');
  expect(headers.get('strict-transport-security')).toBe(expected);
});
