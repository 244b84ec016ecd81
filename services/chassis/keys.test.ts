import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../test/support/wait.ts';
import { remoteKeys } from './keys.ts';
import { createLogger } from './logger.ts';
import { createTestKey, startJwksServer, type JwksServer } from './testing/jwks-server.ts';

const [first, second] = [createTestKey('first'), createTestKey('second')];
const minutes = 60_000;
const log: string[] = [];
const logger = createLogger('gateway', 'info', { write: (line) => void log.push(line) });
const realNow = performance.now.bind(performance);

let server: JwksServer;
let passed: number;

beforeEach(async () => {
  server = await startJwksServer(first);
  passed = 0;
  log.length = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => realNow() + passed);
});
afterEach(() => {
  jest.restoreAllMocks();
  server.stop();
});

const keysOf = () => remoteKeys(server.url, logger);
const refuse = () => {
  server.answer = (_request, response) => response.writeHead(503).end();
};
const away = expect.objectContaining({ status: 503, error: 'service_unavailable' }) as object;

test('the set is fetched once for all who ask', async () => {
  const keys = keysOf();
  const got = await Promise.all(Array.from({ length: 20 }, () => keys.get('first')));
  for (const key of got) expect(key!.equals(first.publicKey)).toBe(true);
  await keys.get('first');
  expect(server.paths).toEqual(['/.well-known/jwks.json']);
});

test('an unknown kid has it fetched again, once in ten seconds', async () => {
  const keys = keysOf();
  await keys.get('first');
  server.keys = [first, second];
  // Just fetched: what is not there is not there.
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

test('while auth is away a kid that is not in the set cannot be judged; those who ask share a try', async () => {
  const keys = keysOf();
  await keys.get('first');
  refuse();
  passed += 11_000;
  const invented = Array.from({ length: 50 }, (_, index) => keys.get(`invented-${index}`));
  for (const one of invented) await expect(one).rejects.toEqual(away);
  expect(server.paths).toHaveLength(2);
  expect(await keys.get('first')).toBeDefined();
  const began = realNow();
  while (realNow() < began + 700)
    await Promise.race([keys.get('invented').catch(() => undefined), sleep(10)]);
  expect(server.paths.length).toBeLessThanOrEqual(3 + (realNow() - began) / 500);
  expect(server.paths.length).toBeGreaterThan(2);
  expect(log.filter((line) => line.includes(`:${new URL(server.url).port}/`))).toHaveLength(1);
});

test('a set is kept fresh without traffic: a key that is published is known before it signs', async () => {
  const keys = keysOf();
  await keys.get('first');
  server.keys = [first, second];
  passed += 4 * minutes;
  await keys.get('first');
  expect(server.paths).toHaveLength(1);
  passed += 2 * minutes;
  await until('it is fetched again', () => server.paths.length === 2);
  // Asked for; this waits until it is read.
  await keys.get('second');
  expect(server.paths).toHaveLength(2);
  // Auth goes away at the very moment of the switch, and invented kids keep its cool-down running.
  refuse();
  await Promise.allSettled(Array.from({ length: 50 }, (_, index) => keys.get(`invented-${index}`)));
  expect(await keys.get('second')).toBeDefined();
});

test('a key that was published and began to sign while auth was away is known at its first token', async () => {
  const { answer } = server;
  const keys = keysOf();
  await keys.get('first');
  refuse();
  passed += 12 * minutes;
  await expect(keys.get('invented')).rejects.toEqual(away);
  server.answer = answer;
  server.keys = [first, second];
  const [key] = await Promise.all([keys.get('second'), keys.get('another')]);
  expect(key).toBeDefined();
});

test('while auth is away the old set is used for an hour', async () => {
  const keys = keysOf();
  await keys.get('first');
  refuse();
  passed += 59 * minutes;
  expect(await keys.get('first')).toBeDefined();
  passed += 2 * minutes;
  await expect(keys.get('first')).rejects.toEqual(away);
  await expect(keys.get('second')).rejects.toEqual(away);
});

test('a key that is not published any more is gone after five minutes', async () => {
  const keys = keysOf();
  await keys.get('first');
  server.keys = [second];
  passed += 6 * minutes;
  expect(await keys.get('first')).toBeDefined();
  await until('the old key is gone', async () => !(await keys.get('first')));
  expect(await keys.get('second')).toBeDefined();
  expect(server.paths).toHaveLength(2);
});

test('as long as there was never a set it says so, and tries again soon', async () => {
  const answer = server.answer;
  refuse();
  const keys = keysOf();
  await expect(keys.get('first')).rejects.toEqual(away);
  const next = keys.get('first');
  expect(server.paths).toHaveLength(1);
  server.answer = answer;
  expect(await next).toBeDefined();
});

test('a server that hangs is not waited for', async () => {
  server.answer = () => undefined;
  await expect(keysOf().get('first')).rejects.toEqual(away);
});

const { jwk } = second;
test.each([
  ['not JSON', 200, '<html>'],
  ['no set', 200, '{}'],
  [
    'a symmetric key',
    200,
    JSON.stringify({ keys: [{ kty: 'oct', use: 'sig', alg: 'HS256', kid: 'second', k: 'AA' }] }),
  ],
  ['a key for another algorithm', 200, JSON.stringify({ keys: [{ ...jwk, alg: 'RS512' }] })],
  ['a key for encryption', 200, JSON.stringify({ keys: [{ ...jwk, use: 'enc' }] })],
  ['a key without its modulus', 200, JSON.stringify({ keys: [{ ...jwk, n: undefined }] })],
  ['an error', 500, JSON.stringify({ keys: [jwk] })],
])('%s does not replace the set there is', async (_, status, body) => {
  const keys = keysOf();
  await keys.get('first');
  server.answer = (_request, response) => response.writeHead(status).end(body);
  passed += 11_000;
  await expect(keys.get('second')).rejects.toEqual(away);
  expect(await keys.get('first')).toBeDefined();
});

test('it does not follow to another address', async () => {
  const other = await startJwksServer(second);
  server.answer = (_request, response) => response.writeHead(302, { Location: other.url }).end();
  await expect(keysOf().get('second'))
    .rejects.toEqual(away)
    .finally(() => other.stop());
  expect(other.paths).toEqual([]);
});
