import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../test/support/wait.ts';
import { createJwksClient, type JwksClient } from './auth-state.ts';
import { createLogger } from './logger.ts';
import { createTestKey, startJwksServer, type JwksServer } from './testing/jwks-server.ts';

const [first, second] = [createTestKey('first'), createTestKey('second')];
const minutes = 60_000;
const log: string[] = [];
const logger = createLogger('gateway', 'info', { write: (line) => void log.push(line) });
const realNow = performance.now.bind(performance);

let server: JwksServer;
let passed: number;
const opened: JwksClient[] = [];

beforeEach(async () => {
  server = await startJwksServer(first);
  passed = 0;
  log.length = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => realNow() + passed);
});
afterEach(async () => {
  jest.restoreAllMocks();
  for (const keys of opened.splice(0)) await keys.close();
  server.stop();
});

function keysOf(): JwksClient {
  const keys = createJwksClient(server.url, logger);
  opened.push(keys);
  return keys;
}
const refuse = () => void (server.answer = (_request, response) => response.writeHead(503).end());
const unavailable = expect.objectContaining({ status: 503, error: 'service_unavailable' }) as object;

test('a published kid that the set lacks causes a fetch; 503 while only one of both has a kid', async () => {
  const keys = keysOf();
  await keys.get('first');
  keys.setPublished(['first', 'second']);
  await until('it is fetched before a token needs it', () => server.paths.length === 2);
  await expect(keys.get('second')).rejects.toEqual(unavailable);
  server.keys = [first, second];
  expect(await keys.get('second')).toBeDefined();
  keys.setPublished(['first']);
  await expect(keys.get('second')).rejects.toEqual(unavailable);
});

test('an unknown kid causes a fetch, at most once in ten seconds', async () => {
  const keys = keysOf();
  await keys.get('first');
  server.keys = [first, second];
  // The set was just fetched, so an unknown kid causes no fetch.
  expect(await keys.get('second')).toBeUndefined();
  passed += 11_000;
  const invented = Array.from({ length: 50 }, (_, index) => `invented-${index}`);
  const got = await Promise.all([...invented, 'second'].map((kid) => keys.get(kid)));
  expect(got.at(-1)!.equals(second.publicKey)).toBe(true);
  expect(got.slice(0, -1).every((key) => key === undefined)).toBe(true);
  for (const kid of invented) await keys.get(kid);
  expect(server.paths).toHaveLength(2);
  passed += 11_000;
  await keys.get('invented');
  expect(server.paths).toHaveLength(3);
});

test('while auth is unavailable an unknown kid is a 503, and concurrent calls share a retry', async () => {
  const keys = keysOf();
  await keys.get('first');
  refuse();
  passed += 11_000;
  const invented = Array.from({ length: 50 }, (_, index) => keys.get(`invented-${index}`));
  for (const one of invented) await expect(one).rejects.toEqual(unavailable);
  expect(server.paths).toHaveLength(2);
  expect(await keys.get('first')).toBeDefined();
  const began = realNow();
  while (realNow() < began + 700 || server.paths.length < 3)
    await Promise.race([keys.get('invented').catch(() => undefined), sleep(10)]);
  expect(server.paths.length).toBeLessThanOrEqual(3 + (realNow() - began) / 500);
  expect(server.paths.length).toBeGreaterThan(2);
  expect(log.filter((line) => line.includes(`:${new URL(server.url).port}/`))).toHaveLength(1);
});

test('refreshes the set without traffic, so that a key is known before it signs', async () => {
  const keys = keysOf();
  await keys.get('first');
  server.keys = [first, second];
  passed += 4 * minutes;
  await keys.get('first');
  expect(server.paths).toHaveLength(1);
  passed += 2 * minutes;
  await until('it is fetched again', () => server.paths.length === 2);
  // The request was sent; wait until its reply is read.
  await keys.get('second');
  expect(server.paths).toHaveLength(2);
  // Auth becomes unavailable at the moment of the switch, and invented kids keep the cool-down running.
  refuse();
  await Promise.allSettled(Array.from({ length: 50 }, (_, index) => keys.get(`invented-${index}`)));
  expect(await keys.get('second')).toBeDefined();
});

test('a key that began to sign while auth was unavailable is known at its first token', async () => {
  const { answer } = server;
  const keys = keysOf();
  await keys.get('first');
  refuse();
  passed += 12 * minutes;
  await expect(keys.get('invented')).rejects.toEqual(unavailable);
  server.answer = answer;
  server.keys = [first, second];
  const [key] = await Promise.all([keys.get('second'), keys.get('another')]);
  expect(key).toBeDefined();
});

test('uses the old set for an hour while auth is unavailable', async () => {
  const keys = keysOf();
  await keys.get('first');
  refuse();
  passed += 59 * minutes;
  expect(await keys.get('first')).toBeDefined();
  passed += 2 * minutes;
  await expect(keys.get('first')).rejects.toEqual(unavailable);
  await expect(keys.get('second')).rejects.toEqual(unavailable);
});

test('drops a key within five minutes after it was withdrawn', async () => {
  const keys = keysOf();
  await keys.get('first');
  server.keys = [second];
  passed += 6 * minutes;
  expect(await keys.get('first')).toBeDefined();
  await until('the old key is gone', async () => !(await keys.get('first')));
  expect(await keys.get('second')).toBeDefined();
  expect(server.paths).toHaveLength(2);
});

test('until the first success calls return 503 and fetches are retried', async () => {
  const { answer } = server;
  refuse();
  const keys = keysOf();
  await expect(keys.get('first')).rejects.toEqual(unavailable);
  await until('it has tried several times', () => server.paths.length > 5);
  expect(keys.isLoaded()).toBe(false);
  expect(log).toHaveLength(1);
  server.answer = answer;
  await until('the set is loaded', () => keys.isLoaded());
});

test('fetches nothing after it was closed', async () => {
  const keys = keysOf();
  await keys.get('first');
  await keys.close();
  passed += 6 * minutes;
  // The background refresh checks every 500 ms whether it is due.
  await sleep(600);
  expect(server.paths).toHaveLength(1);
  server.answer = () => undefined;
  const hanging = keysOf();
  await until('a fetch has begun', () => server.paths.length === 2);
  await hanging.close();
  expect(log).toEqual([]);
});

test('aborts the fetch of a hanging server', async () => {
  server.answer = () => undefined;
  await expect(keysOf().get('first')).rejects.toEqual(unavailable);
});

const { jwk } = second;
test.each([
  ['not JSON', 200, '<html>'],
  ['no set', 200, '{}'],
  ['a symmetric key', 200, '{"keys":[{"kty":"oct","use":"sig","alg":"HS256","kid":"second","k":"AA"}]}'],
  ['a key for another algorithm', 200, JSON.stringify({ keys: [{ ...jwk, alg: 'RS512' }] })],
  ['a key for encryption', 200, JSON.stringify({ keys: [{ ...jwk, use: 'enc' }] })],
  ['a key without its modulus', 200, JSON.stringify({ keys: [{ ...jwk, n: undefined }] })],
  ['an error', 500, JSON.stringify({ keys: [jwk] })],
])('%s does not replace the current set', async (_, status, body) => {
  const keys = keysOf();
  await keys.get('first');
  server.answer = (_request, response) => response.writeHead(status).end(body);
  passed += 11_000;
  await expect(keys.get('second')).rejects.toEqual(unavailable);
  expect(await keys.get('first')).toBeDefined();
});

test('follows no redirects', async () => {
  const other = await startJwksServer(second);
  server.answer = (_request, response) => response.writeHead(302, { Location: other.url }).end();
  await expect(keysOf().get('second'))
    .rejects.toEqual(unavailable)
    .finally(() => other.stop());
  expect(other.paths).toEqual([]);
});
