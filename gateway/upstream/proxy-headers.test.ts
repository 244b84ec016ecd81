import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { sendRaw, statusOf } from '../../test/support/raw-http.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../testing/gateway.ts';
import { mint } from '../testing/tokens.ts';
import { sayOk, startUpstream, type RecordingUpstream } from '../testing/upstream.ts';

let upstream: RecordingUpstream;
const gateways: TestGateway[] = [];

async function start(options: Partial<TestGatewayOptions> = {}): Promise<TestGateway> {
  const services = { auth: upstream.url, 'content-cache': upstream.url, pulse: upstream.url };
  const gateway = await startGateway({ services, ...options });
  gateways.push(gateway);
  return gateway;
}
beforeAll(async () => void (upstream = await startUpstream()));
afterEach(async () => {
  upstream.answer = sayOk;
  upstream.received.splice(0);
  for (const gateway of gateways.splice(0)) await gateway.close();
});
afterAll(() => upstream.close());

/** The headers that arrive at the service when these are sent, each as often as it is listed. */
async function arriving({ origin }: TestGateway, ...headers: [string, string][]) {
  const lines = [['Host', 'evil.test'], ['Connection', 'close'], ...headers];
  const text = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  expect(statusOf(await sendRaw(origin, `GET /.well-known/jwks.json HTTP/1.1\r\n${text}\r\n`))).toBe(200);
  return upstream.received.at(-1)!.headers;
}

test('what a client says of itself, its way and other targets does not arrive; the gateway says it', async () => {
  const dropped =
    `X-User-Id X-User-Roles X_User_Id X-Forwarded-For X-Forwarded-Proto X-Forwarded-Host X-Forwarded-Port
    X-Forwarded X_Forwarded_For X-Real-IP Forwarded traceparent tracestate baggage X-HTTP-Method-Override X-HTTP-Method
    X-Method-Override X-Original-URL X-Rewrite-URL TE Trailer Keep-Alive Proxy-Authorization Proxy-Connection
    HTTP2-Settings X-Client-IP X_Client_IP True-Client-IP CF-Connecting-IP X-Cluster-Client-IP Remote-User
    X-Remote-User`.split(/\s+/);
  const gateway = await start({ publicUrl: 'https://api.example.com' });
  const headers = await arriving(
    gateway,
    ...dropped.map((name): [string, string] => [name, 'evil']),
    ['X-Request-Id', 'my-id.1'],
    ['Accept-Language', 'de'],
  );
  expect(JSON.stringify(headers)).not.toContain('evil');
  expect(headers).toMatchObject({
    host: new URL(upstream.url).host,
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-host': 'api.example.com',
    'x-forwarded-proto': 'https',
    'x-request-id': 'my-id.1',
    'accept-language': 'de',
    connection: 'keep-alive',
  });
});

test('a header with _, which some servers take for -, does not arrive', async () => {
  const names = ['Transfer_Encoding', 'Content_Length', 'Authorization_', 'X_Anything'];
  const headers = await arriving(await start(), ...names.map((name): [string, string] => [name, '3']));
  expect(Object.keys(headers).filter((name) => name.includes('_'))).toEqual([]);
});

test('headers that Connection names do not arrive, but Connection cannot take away what the gateway sets', async () => {
  const gateway = await start();
  const names = 'close, X-Secret, X-Forwarded-For, x-request-id, Host';
  const headers = await arriving(gateway, ['Connection', names], ['X-Secret', '1']);
  expect(headers).not.toHaveProperty('x-secret');
  expect(headers).toMatchObject({ 'x-forwarded-for': '127.0.0.1', host: new URL(upstream.url).host });
  expect(headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
});

test('Authorization arrives as it was checked, also when there are two', async () => {
  const gateway = await start();
  const token = `Bearer ${mint()}`;
  const lines = `Host: x\r\nConnection: close\r\nAuthorization: ${token}\r\nAuthorization: Bearer other\r\n`;
  expect(statusOf(await sendRaw(gateway.origin, `GET /api/me HTTP/1.1\r\n${lines}\r\n`))).toBe(200);
  expect(upstream.received.at(-1)!.headers.authorization).toBe(token);
});

describe('cookies', () => {
  const login = `/api/identity/login?return_to=x&state=x&code_challenge=${'x'.repeat(43)}`;

  test.each([
    ['the page of pulse', '/pulse', true],
    ['a login that a browser begins', login, true],
    ['a style sheet', '/pulse/assets/pulse.css', false],
    ['what is for programs', '/.well-known/jwks.json', false],
  ])('%s: pass there and back as the contract says', async (_, path, pass) => {
    upstream.answer = (_request, response) => {
      response.writeHead(200, { 'Set-Cookie': ['a=1; Path=/pulse', 'b=2'] }).end('{}');
    };
    const gateway = await start();
    const { headers } = await fetch(gateway.origin + path, { headers: { Cookie: 'c=3; d=4' } });
    expect(headers.getSetCookie()).toEqual(pass ? ['a=1; Path=/pulse', 'b=2'] : []);
    expect(upstream.received.at(-1)!.headers.cookie).toBe(pass ? 'c=3; d=4' : undefined);
  });
});

test.each([
  ['no proxy is trusted', [], '1.2.3.4', '127.0.0.1'],
  ['the peer is trusted', ['127.0.0.0/8'], '1.2.3.4', '1.2.3.4'],
  ['the client wrote the first hops itself', ['127.0.0.0/8'], '9.9.9.9, 8.8.8.8, 1.2.3.4', '1.2.3.4'],
  ['several proxies are trusted', ['127.0.0.0/8', '10.0.0.0/8'], '6.6.6.6, 1.2.3.4, 10.0.0.1', '1.2.3.4'],
  ['all hops are trusted', ['127.0.0.0/8', '10.0.0.0/8'], '10.0.0.2, 10.0.0.1', '10.0.0.2'],
  [
    'a hop is noise: the last known one',
    ['127.0.0.0/8', '10.0.0.0/8'],
    '1.2.3.4, unknown, 10.0.0.1',
    '10.0.0.1',
  ],
  ['a hop is an octal address', ['127.0.0.0/8'], '012.0.0.1', '127.0.0.1'],
  ['IPv6, mapped IPv4 in it', ['127.0.0.0/8', '2001:db8::/32'], '::ffff:1.2.3.4, 2001:db8::1', '1.2.3.4'],
  ['IPv6', ['127.0.0.0/8'], '2001:DB8:0:0::1', '2001:db8::1'],
])("the client's address when %s", async (_, trustedProxies, forwardedFor, expected) => {
  const gateway = await start({ trustedProxies });
  const headers = await arriving(gateway, ['X-Forwarded-For', forwardedFor]);
  expect(headers['x-forwarded-for']).toBe(expected);
});

test('several X-Forwarded-For lines are one list', async () => {
  const gateway = await start({ trustedProxies: ['127.0.0.0/8', '10.0.0.0/8'] });
  const headers = await arriving(
    gateway,
    ['X-Forwarded-For', '6.6.6.6, 1.2.3.4'],
    ['X-Forwarded-For', '10.0.0.1'],
  );
  expect(headers['x-forwarded-for']).toBe('1.2.3.4');
});

describe('replies', () => {
  test('what is for the gateway or for one connection is taken off', async () => {
    upstream.answer = (_request, response) => {
      response.writeHead(200, {
        'Server-Timing': 'db;dur=1.0;desc="1"',
        'X-Powered-By': 'Express',
        'X-Request-Id': 'another',
        Connection: 'X-Hop',
        'X-Hop': '1',
        'Proxy-Authenticate': 'Basic',
        'X-Cache': 'hit',
        Vary: 'Accept',
      });
      response.end('{}');
    };
    const gateway = await start();
    const { headers } = await fetch(`${gateway.origin}/.well-known/jwks.json`, {
      headers: { 'X-Request-Id': 'mine' },
    });
    for (const name of ['server-timing', 'x-powered-by', 'x-hop', 'proxy-authenticate']) {
      expect([name, headers.get(name)]).toEqual([name, null]);
    }
    expect(headers.get('x-request-id')).toBe('mine');
    expect(headers.get('x-cache')).toBe('hit');
    expect(headers.get('vary')).toBe('Origin, Accept');
  });

  test.each(['/.well-known/jwks.json', '/api/nothing', '/api/me', '/api/%00', '/health'])(
    '%s carries the security headers',
    async (path) => {
      const gateway = await start();
      const { headers } = await fetch(gateway.origin + path);
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('x-request-id')).not.toBeNull();
      expect(headers.get('x-powered-by')).toBeNull();
      expect(headers.get('strict-transport-security')).toBeNull();
    },
  );

  test('HSTS is sent where clients come by https', async () => {
    const gateway = await start({ publicUrl: 'https://api.example.com' });
    const { headers } = await fetch(`${gateway.origin}/api/nothing`);
    expect(headers.get('strict-transport-security')).toMatch(/^max-age=31536000/);
  });
});
