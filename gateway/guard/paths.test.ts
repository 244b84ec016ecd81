import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { endpoints, type Endpoint } from '@content-platform/contract';
import { sendRaw, statusOf } from '../../test/support/raw-http.ts';
import { createAllowlist } from './allowlist.ts';
import { startGateway, type TestGateway } from '../testing/gateway.ts';
import { forgivingReading, variantsOf } from '../testing/target-variants.ts';
import { mint, withScopes } from '../testing/tokens.ts';
import { startUpstream, type RecordingUpstream } from '../testing/upstream.ts';

const targets = [
  ['GET', '/api/me'],
  ['GET', '/api/content/webform/12'],
  ['POST', '/api/admin/cache/clear-model'],
  ['GET', '/api/admin/failed-jobs'],
  ['DELETE', '/api/admin/failed-jobs/5'],
  ['POST', '/api/admin/failed-jobs/retry'],
] as const;
const attempts = targets.flatMap(([method, path]) =>
  [path, ...new Set(variantsOf(path))].map((target) => ({ method, target })),
);
const allowlist = createAllowlist(endpoints);

let upstream: RecordingUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ services: { auth: upstream.url, 'content-cache': upstream.url } });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => void upstream.received.splice(0));

function ask(method: string, target: string, headers: Record<string, string> = {}): Promise<string> {
  const lines = Object.entries({ Host: 'gateway.test', Connection: 'close', ...headers });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return sendRaw(gateway.origin, Buffer.from(`${method} ${target} HTTP/1.1\r\n${head}\r\n`, 'latin1'));
}

/** Sends every variant, some at a time. */
async function askAll(headers: Record<string, string>, methods?: string[]): Promise<void> {
  const asked = attempts.flatMap(({ method, target }) =>
    (methods ?? [method]).map((each) => ({ method: each, target })),
  );
  for (let index = 0; index < asked.length; index += 25) {
    const group = asked.slice(index, index + 25);
    const statuses = await Promise.all(
      group.map(async ({ method, target }) => statusOf(await ask(method, target, headers))),
    );
    // A clean close would also do; a 5xx never.
    expect(statuses.filter((status) => status !== undefined && status >= 500)).toEqual([]);
  }
}

const endpointAt = (path: string, method: string): Endpoint | undefined => allowlist(path)?.get(method);

test('there are more than 200 ways to write a protected path', () => {
  expect(attempts.length).toBeGreaterThan(200);
  expect(new Set(attempts.map(({ target }) => target)).size).toBeGreaterThan(200);
});

test('without a valid token no variant arrives anywhere', async () => {
  await askAll({});
  await askAll({ Authorization: 'Bearer a.b.c' });
  await askAll({}, ['HEAD', 'POST']);
  expect(upstream.received).toEqual([]);
});

test('with a token that has no scope nothing arrives that anybody could read as more', async () => {
  await askAll({ Authorization: `Bearer ${mint()}` });
  expect(upstream.received.length).toBeGreaterThan(2);
  for (const { method, url } of upstream.received) {
    expect(forgivingReading(url)).not.toContain('admin');
    expect(endpointAt(url.split('?')[0]!, method)?.access).toMatch(/^(user|token)$/);
  }
});

test('whatever arrives is what was sent, and every reading of it is the endpoint it was checked as', async () => {
  await askAll({ Authorization: `Bearer ${withScopes('jobs:manage', 'cache:clear')}` });
  const sent = new Set(attempts.map(({ method, target }) => `${method} ${target}`));
  const arrived = upstream.received.map(({ method, url }) => `${method} ${url}`);
  for (const [method, path] of targets) expect(arrived).toContain(`${method} ${path}`);
  expect(arrived.filter((line) => !sent.has(line))).toEqual([]);
  for (const { method, url } of upstream.received) {
    const checkedAs = endpointAt(url.split('?')[0]!, method);
    expect([url, endpointAt(forgivingReading(url), method)?.name]).toEqual([url, checkedAs?.name]);
  }
});

test('headers that name another method or target change nothing and do not arrive', async () => {
  const override = {
    'X-HTTP-Method-Override': 'DELETE',
    'X-HTTP-Method': 'DELETE',
    'X-Method-Override': 'DELETE',
    'X-Original-URL': '/api/admin/cache/clear-model',
    'X-Rewrite-URL': '/api/admin/cache/clear-model',
    'X-Original-Method': 'DELETE',
    X_HTTP_Method_Override: 'DELETE',
  };
  // A public path, a protected one without and with a token.
  expect(statusOf(await ask('GET', '/.well-known/jwks.json', override))).toBe(200);
  expect(statusOf(await ask('GET', '/api/admin/failed-jobs/5', override))).toBe(401);
  const token = { Authorization: `Bearer ${withScopes('jobs:manage')}` };
  expect(statusOf(await ask('GET', '/api/admin/failed-jobs/5', { ...override, ...token }))).toBe(200);
  expect(upstream.received.map(({ method, url }) => `${method} ${url}`)).toEqual([
    'GET /.well-known/jwks.json',
    'GET /api/admin/failed-jobs/5',
  ]);
  for (const { headers } of upstream.received) {
    expect(Object.keys(headers).filter((name) => /override|method|original|rewrite/.test(name))).toEqual([]);
  }
});

test.each([
  ['GET', '/api/nothing', 404, undefined],
  ['GET', '/api/login', 405, 'POST'],
  ['HEAD', '/api/me', 401, undefined],
  ['HEAD', '/api/login', 405, 'POST'],
  ['OPTIONS', '/api/admin/failed-jobs/5', 405, 'DELETE, GET, HEAD'],
  ['PURGE', '/api/admin/failed-jobs/retry', 405, 'POST'],
  ['POST', '/health', 405, 'GET, HEAD'],
  ['POST', '/api/nothing/%2e', 400, undefined],
])('%s %s answers %i', async (method, target, status, allow) => {
  const raw = await ask(method, target);
  expect(statusOf(raw)).toBe(status);
  expect(/^Allow: (.*)\r$/im.exec(raw)?.[1]).toBe(allow);
});

test('a path is looked up before a token is asked for, and that before the body is looked at', async () => {
  const body = { 'Content-Length': '9999999' };
  expect(statusOf(await ask('POST', '/api/admin/nothing', body))).toBe(404);
  expect(statusOf(await ask('GET', '/api/admin/cache/clear-model', body))).toBe(405);
  expect(statusOf(await ask('POST', '/api/admin/cache/clear-model', body))).toBe(401);
  const token = { Authorization: `Bearer ${mint()}`, ...body };
  expect(statusOf(await ask('POST', '/api/admin/cache/clear-model', token))).toBe(403);
  const scope = { Authorization: `Bearer ${withScopes('cache:clear')}`, ...body };
  expect(statusOf(await ask('POST', '/api/admin/cache/clear-model', scope))).toBe(415);
  expect(
    statusOf(
      await ask('POST', '/api/admin/cache/clear-model', { ...scope, 'Content-Type': 'application/json' }),
    ),
  ).toBe(413);
});
