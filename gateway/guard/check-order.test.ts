import { expect, test } from '@jest/globals';
import { statusOf } from '../../test/support/raw-http.ts';
import { mint, withScopes } from '../testing/tokens.ts';
import { useTestGateway } from '../testing/use-test-gateway.ts';

const fixture = useTestGateway({ timeouts: { drain: 50 } });

function ask(method: string, target: string, headers: Record<string, string> = {}): Promise<string> {
  const lines = Object.entries({ Host: 'x', Connection: 'close', ...headers }).map((pair) => pair.join(': '));
  return fixture.send(`${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
}

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
  expect(fixture.upstream.received).toEqual([]);
});

const clear = '/api/admin/cache/clear-model';
const token = { Authorization: `Bearer ${mint()}` };
const scope = { Authorization: `Bearer ${withScopes('cache:clear')}` };

test.each([
  ['path', 'POST', '/api/admin/nothing', {}, 404],
  ['method', 'GET', clear, {}, 405],
  ['token', 'POST', clear, {}, 401],
  ['scope', 'POST', clear, token, 403],
  ['media type', 'POST', clear, scope, 415],
  ['size', 'POST', clear, { ...scope, 'Content-Type': 'application/json' }, 413],
])('checks the %s before the later entries of this list', async (_, method, path, headers, status) => {
  expect(statusOf(await ask(method, path, { ...headers, 'Content-Length': '9999999' }))).toBe(status);
});

test('ignores headers that override the method', async () => {
  const override = { 'X-HTTP-Method-Override': 'DELETE', 'X-Original-URL': clear };
  expect(statusOf(await ask('GET', '/api/admin/failed-jobs/5', override))).toBe(401);
  const allowed = { ...override, Authorization: `Bearer ${withScopes('jobs:manage')}` };
  expect(statusOf(await ask('GET', '/api/admin/failed-jobs/5', allowed))).toBe(200);
  expect(fixture.upstream.received).toMatchObject([{ method: 'GET', url: '/api/admin/failed-jobs/5' }]);
});
