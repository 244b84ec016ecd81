import { expect, test } from '@jest/globals';
import { statusOf } from '../../test/support/raw-http.ts';
import { mint } from '../testing/tokens.ts';
import { useTestGateway } from '../testing/use-test-gateway.ts';

const fixture = useTestGateway();

/** Returns the headers that arrive at the service when these are sent, each as often as it is listed. */
async function arriving(...headers: [string, string][]) {
  const lines = [['Host', 'evil.test'], ['Connection', 'close'], ...headers];
  const text = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  expect(statusOf(await fixture.send(`GET /.well-known/jwks.json HTTP/1.1\r\n${text}\r\n`))).toBe(200);
  return fixture.upstream.received.at(-1)!.headers;
}

test('replaces client headers about identity, address and target, and drops headers with an underscore', async () => {
  const dropped =
    `X-User-Id X-User-Roles X_User_Id X-Forwarded-For X-Forwarded-Proto X-Forwarded-Host X-Forwarded-Port
    X-Forwarded X_Forwarded_For X-Real-IP Forwarded traceparent tracestate baggage X-HTTP-Method-Override X-HTTP-Method
    X-Method-Override X-Original-URL X-Rewrite-URL TE Trailer Keep-Alive Proxy-Authorization Proxy-Connection
    HTTP2-Settings X-Client-IP X_Client_IP True-Client-IP CF-Connecting-IP X-Cluster-Client-IP Remote-User
    X-Remote-User Transfer_Encoding Content_Length Authorization_ X_Anything`.split(/\s+/);
  await fixture.start({ publicUrl: 'https://api.example.com' });
  const headers = await arriving(
    ...dropped.map((name): [string, string] => [name, 'evil']),
    ['X-Request-Id', 'my-id.1'],
    ['Accept-Language', 'de'],
  );
  expect(JSON.stringify(headers)).not.toContain('evil');
  expect(headers).toMatchObject({
    host: new URL(fixture.upstream.url).host,
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-host': 'api.example.com',
    'x-forwarded-proto': 'https',
    'x-request-id': 'my-id.1',
    'accept-language': 'de',
    connection: 'keep-alive',
  });
});

test('drops headers named in Connection, but not headers that the gateway sets', async () => {
  await fixture.start();
  const names = 'close, X-Secret, X-Forwarded-For, x-request-id, Host';
  const headers = await arriving(['Connection', names], ['X-Secret', '1']);
  expect(headers).not.toHaveProperty('x-secret');
  expect(headers).toMatchObject({ 'x-forwarded-for': '127.0.0.1', host: new URL(fixture.upstream.url).host });
  expect(headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
});

test('forwards the checked Authorization header, also if there are two', async () => {
  await fixture.start();
  const token = `Bearer ${mint()}`;
  const lines = `Host: x\r\nConnection: close\r\nAuthorization: ${token}\r\nAuthorization: Bearer other\r\n`;
  expect(statusOf(await fixture.send(`GET /api/me HTTP/1.1\r\n${lines}\r\n`))).toBe(200);
  expect(fixture.upstream.received[0]!.headers.authorization).toBe(token);
});

test('reads several X-Forwarded-For lines as one list and forwards only the client', async () => {
  await fixture.start({ trustedProxies: ['127.0.0.0/8', '10.0.0.0/8'] });
  const headers = await arriving(['X-Forwarded-For', '6.6.6.6, 1.2.3.4'], ['X-Forwarded-For', '10.0.0.1']);
  expect(headers['x-forwarded-for']).toBe('1.2.3.4');
});

const login = `/api/identity/login?return_to=x&state=x&code_challenge=${'x'.repeat(43)}`;

test.each([
  ['/pulse', true],
  [login, true],
  ['/pulse/assets/pulse.css', false],
  ['/.well-known/jwks.json', false],
])('forwards cookies of %s in both directions: %s', async (path, pass) => {
  fixture.upstream.answer = (_request, response) => {
    response.writeHead(200, { 'Set-Cookie': ['a=1; Path=/pulse', 'b=2'] }).end('{}');
  };
  await fixture.start();
  const { headers } = await fixture.ask(path, { headers: { Cookie: 'c=3; d=4' } });
  expect(headers.getSetCookie()).toEqual(pass ? ['a=1; Path=/pulse', 'b=2'] : []);
  expect(fixture.upstream.received.at(-1)!.headers.cookie).toBe(pass ? 'c=3; d=4' : undefined);
});

test('removes reply headers for the gateway and connection headers', async () => {
  fixture.upstream.answer = (_request, response) => {
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
  await fixture.start();
  const { headers } = await fixture.get({ headers: { 'X-Request-Id': 'mine' } });
  const kept = { 'x-request-id': 'mine', 'x-cache': 'hit', vary: 'Origin, Accept' };
  expect(Object.fromEntries(headers)).toMatchObject(kept);
  for (const name of ['server-timing', 'x-powered-by', 'x-hop', 'proxy-authenticate'])
    expect([name, headers.get(name)]).toEqual([name, null]);
});
