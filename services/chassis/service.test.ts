import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import { z } from 'zod';
import { multiLineText } from '@content-platform/contract';
import { HttpError } from './http-error.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { handle } from './service.ts';
import { sentSpans } from './testing/sent-spans.ts';
import { define, serve } from './testing/served.ts';

const echo = define('echo', 'POST', '/api/echo/:id', {
  params: z.strictObject({ id: z.string().regex(/^\d+$/) }),
  query: z.strictObject({ view: z.enum(['a', 'b']).default('a') }),
  body: { kinds: ['json', 'form'], maxBytes: 100, schema: z.strictObject({ name: multiLineText(1, 20) }) },
});
const secret = define('secret', 'GET', '/api/secret', { access: 'cache:clear' });
const broken = define('broken', 'GET', '/api/broken', {});
const fixed = define('fixed', 'POST', '/api/echo/all', {});
const showAddress = define('showAddress', 'GET', '/api/address', {});
const slow = define('slow', 'GET', '/api/slow', {});
const switchedOff = define('switchedOff', 'POST', '/api/:feature/secret', {
  access: 'user',
  params: z.strictObject({ feature: z.literal('feature') }),
  body: { kinds: ['json'], maxBytes: 10, schema: z.strictObject({}) },
});

let slowRequests = 0;
const spans = sentSpans(1);
const served = useStarted(() =>
  serve([
    handle(echo, ({ params, query, body }) => ({ status: 200 as const, body: { params, query, body } })),
    handle(secret, ({ caller }) => ({ status: 200 as const, body: { kind: caller.kind } })),
    handle(fixed, () => ({ status: 200 as const, body: { fixed: true } })),
    handle(showAddress, ({ address }) => ({ status: 200 as const, body: { address } })),
    handle(
      switchedOff,
      () => ({ status: 200 as const, body: {} }),
      ({ feature }) => {
        if (feature !== 'feature') throw new HttpError('not_found', 'No.');
        throw new HttpError('identity_login_disabled', 'No.');
      },
    ),
    handle(slow, async ({ signal }) => {
      slowRequests += 1;
      if (!signal().aborted) await once(signal(), 'abort');
      return { status: 200 as const, body: {} };
    }),
    handle(broken, () => {
      throw new Error('the disk is on fire');
    }),
  ]),
);

const ask = (path: string, init?: RequestInit) => served.ask(path, init);
const askAs = (token: string, path: string, init: RequestInit = {}) =>
  ask(path, { ...init, headers: { Authorization: `Bearer ${token}`, ...init.headers } });
const post = (body: string | Buffer<ArrayBuffer>, type = 'application/json', path = '/api/echo/1') =>
  ask(path, { method: 'POST', body, headers: { 'Content-Type': type } });

test('passes the parsed request to the handler', async () => {
  const json = await post('{"name":"x"}', 'application/json; charset=utf-8', '/api/echo/7?view=b');
  expect(json.body).toEqual({ params: { id: '7' }, query: { view: 'b' }, body: { name: 'x' } });
  const form = await post('name=x', 'application/x-www-form-urlencoded');
  expect(form.body).toMatchObject({ body: { name: 'x' }, query: { view: 'a' } });
});

test.each([
  ['{"name":', 'application/json', 400, 'malformed_json'],
  ['{"name":"x"}', 'text/plain', 415, 'unsupported_media_type'],
  ['{"name":"x"}', 'application/json; charset=latin1', 415, 'unsupported_media_type'],
  [Buffer.from('{"name":"x"}', 'utf16le'), 'application/json; charset=utf-16', 415, 'unsupported_media_type'],
  [Buffer.from('{"name":"\xff"}', 'latin1'), 'application/json', 415, 'unsupported_media_type'],
  ['name=x', 'application/x-www-form-urlencoded; charset=iso-8859-1', 415, 'unsupported_media_type'],
  [Buffer.from('name=\xff', 'latin1'), 'application/x-www-form-urlencoded', 415, 'unsupported_media_type'],
  [`{"name":"${'x'.repeat(100)}"}`, 'application/json', 413, 'payload_too_large'],
  ['null', 'application/json', 422, 'validation_failed'],
  ['', 'application/json', 422, 'validation_failed'],
  ['{"name":"x","more":1}', 'application/json', 422, 'validation_failed'],
  ['{"name":"x","__proto__":{"admin":true}}', 'application/json', 422, 'validation_failed'],
  ['{"name":"\\u0000"}', 'application/json', 422, 'validation_failed'],
  ['{"name":"\\ud800"}', 'application/json', 422, 'validation_failed'],
  ['name=x&name=y', 'application/x-www-form-urlencoded', 422, 'validation_failed'],
])('a body %j as %s returns %i %s', async (body, type, status, error) => {
  expect(await post(body, type)).toMatchObject({ status, body: { error, code: status } });
});

test('refuses a compressed body, and a body where the contract has none', async () => {
  const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' };
  expect(await ask('/api/echo/1', { method: 'POST', body: '{}', headers })).toMatchObject({ status: 415 });
  const unexpected = await post('{}', 'application/json', '/api/echo/all');
  expect(unexpected).toMatchObject({ status: 400, body: { error: 'malformed_request' } });
});

test('names wrong and repeated parameters', async () => {
  const query = `view=a&view=b&${'m'.repeat(180)}%F0%9F%98%80=1`;
  const { status, body } = await post('{"name":"x"}', 'application/json', `/api/echo/x?${query}`);
  const paths = body.details?.map(({ path, message }) => message.isWellFormed() && path);
  expect([status, paths]).toEqual([422, ['path.id', 'query.view', 'query']]);
  expect((await ask('/api/broken?a=1')).status).toBe(422);
});

test('returns 404, 405 and 400 for unknown paths, methods and undecodable paths', async () => {
  expect(await ask('/api/nothing')).toMatchObject({ status: 404, body: { error: 'not_found' } });
  expect(await ask('/api/secret/')).toMatchObject({ status: 404 });
  expect(await ask('/API/secret')).toMatchObject({ status: 404 });
  const wrong = await ask('/api/secret', { method: 'POST' });
  expect(wrong).toMatchObject({ status: 405, body: { error: 'method_not_allowed' } });
  expect(wrong.headers.get('allow')).toBe('GET, HEAD');
  expect(await post('{}', 'application/json', '/api/echo/%ff')).toMatchObject({ status: 400 });
});

test('prefers a fixed segment to a parameter', async () => {
  expect((await ask('/api/echo/all', { method: 'POST' })).body).toEqual({ fixed: true });
});

test('requires a token and its scope', async () => {
  const as = (token: string) => askAs(token, '/api/secret');
  const none = await ask('/api/secret');
  expect(none).toMatchObject({ status: 401, body: { error: 'token_required' } });
  expect(none.headers.get('www-authenticate')).toBe('Bearer');
  expect(await as('forged')).toMatchObject({ status: 401, body: { error: 'invalid_token' } });
  expect(await as('person')).toMatchObject({ status: 403, body: { error: 'insufficient_scope' } });
  expect(await as('machine')).toMatchObject({ status: 200 as const, body: { kind: 'machine' } });
});

test('checks the gate after the token and before the body', async () => {
  const headers = { 'Content-Type': 'text/plain' };
  const wrong = { method: 'POST', headers, body: 'x'.repeat(20) };
  expect(await ask('/api/feature/secret', wrong)).toMatchObject({ status: 401 });
  expect(await askAs('person', '/api/feature/secret', wrong)).toMatchObject({ status: 501 });
  expect(await askAs('person', '/api/other/secret', wrong)).toMatchObject({ status: 404 });
});

test("takes the client's address from the gateway or else from the socket, without a zone", async () => {
  const addressFor = async (sent?: string) =>
    (await ask('/api/address', sent === undefined ? {} : { headers: { 'X-Forwarded-For': sent } })).body;
  expect(await addressFor()).toEqual({ address: '127.0.0.1' });
  expect(await addressFor('2001:db8::7')).toEqual({ address: '2001:db8::7' });
  expect(await addressFor('fe80::1%eth0')).toEqual({ address: 'fe80::1' });
  expect(await addressFor('nobody')).toEqual({ address: '127.0.0.1' });
  served.peer.address = 'fe80::2%eth0';
  expect(await addressFor()).toEqual({ address: 'fe80::2' });
  served.peer.address = '127.0.0.1';
});

test('masks an unexpected error and logs its cause with the request id', async () => {
  const { status, headers, body } = await ask('/api/broken', { headers: { 'X-Request-Id': 'abc-1' } });
  expect(status).toBe(500);
  expect(headers.get('x-request-id')).toBe('abc-1');
  expect(JSON.stringify(body)).not.toContain('fire');
  expect(body.request_id).toBe('abc-1');
  const line = served.log.find((entry) => entry.includes('on fire'));
  expect(JSON.parse(line!)).toMatchObject({ request_id: 'abc-1', level: 'error' });
});

test('logs a deliberate 5xx as a warning without a stack', async () => {
  const headers = { 'Content-Type': 'text/plain', 'X-Request-Id': 'meant-1' };
  const meant = await askAs('person', '/api/feature/secret', { method: 'POST', headers, body: 'x' });
  expect(meant.status).toBe(501);
  const line = served.log.find((entry) => entry.includes('meant-1'))!;
  expect(JSON.parse(line)).toMatchObject({ level: 'warn', code: 'identity_login_disabled' });
  expect(line).not.toContain('stack');
});

test('replaces a malformed request id', async () => {
  const { headers } = await ask('/api/nothing', { headers: { 'X-Request-Id': 'a b' } });
  expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
});

test('counts a request whose client disconnected as 499, also in its span', async () => {
  const caller = new AbortController();
  const asked = fetch(`${served.origin}/api/slow`, { signal: caller.signal });
  await until('the handler works on it', () => slowRequests === 1);
  caller.abort();
  await expect(asked).rejects.toThrow();
  const span = await until('the span has ended', () => spans.find(({ name }) => name === 'GET /api/slow'));
  expect(span.attributes).toMatchObject({ 'http.response.status_code': 499 });
  const { values } = await served.metrics.requestDuration.get();
  const counts = values
    .filter(({ metricName, labels }) => metricName?.endsWith('_count') && labels.route === '/api/slow')
    .map(({ labels, value }) => [labels.status, value]);
  expect(counts).toEqual([
    ['200', 0],
    ['499', 1],
  ]);
});

test('observes each request once, under its path template', async () => {
  const observed = async () => {
    const { values } = await served.metrics.requestDuration.get();
    return values.filter(({ metricName }) => metricName?.endsWith('_count'));
  };
  const unknown = async () => (await observed()).find(({ labels }) => labels.status === '404')?.value ?? 0;
  const before = await unknown();
  await ask('/api/nothing');
  expect(await unknown()).toBe(before + 1);
  await ask('/api/secret');
  const counts = await observed();
  const refused = counts.find(({ labels }) => labels.route === '/api/secret' && labels.status === '401');
  expect(refused!.value).toBeGreaterThan(0);
  const routes = [echo, secret, broken, fixed, showAddress, slow, switchedOff].map(({ path }) => path);
  expect(new Set(counts.map(({ labels }) => labels.route))).toEqual(new Set([...routes, 'unknown']));
});
