import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { freeRow } from '../../test/support/ports.ts';
import { until } from '../../test/support/wait.ts';
import { createInstances, type Instances } from './instances.ts';
import { startGateway, type TestGateway } from '../testing/gateway.ts';
import { startInstance, type TestInstance } from '../testing/instance.ts';
import { sayOk } from '../testing/upstream.ts';

const addresses = ['127.0.0.1', '127.0.0.2', '127.0.0.3'];
const closers: (() => unknown)[] = [];
let port: number;
/** What the service's name stands for at the moment. */
let named: string[];
let instances: TestInstance[];
let gateway: TestGateway;

beforeEach(async () => {
  port = await freeRow(1);
  instances = await Promise.all(addresses.map((address) => startInstance({ address, port })));
  for (const each of instances) closers.push(each.close);
  named = [...addresses];
  gateway = await startGateway({
    services: { auth: `http://auth.test:${port}` },
    resolve: (hostname) => Promise.resolve(hostname === 'auth.test' ? named : [hostname]),
  });
  closers.push(gateway.close);
});
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

const ask = () => fetch(`${gateway.origin}/.well-known/jwks.json`);
const post = () =>
  fetch(`${gateway.origin}/api/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"email":"a@example.com","password":"x"}',
  });

/** How many of so many requests each instance gets, one after the other. */
async function shares(count: number): Promise<number[]> {
  const before = instances.map(({ requests }) => requests);
  for (let index = 0; index < count; index += 1) expect((await ask()).status).toBe(200);
  return instances.map(({ requests }, index) => requests - before[index]!);
}

/** Requests go to these, and to no other. */
async function untilOnly(expected: number[]): Promise<void> {
  const serves = (await shares(12)).flatMap((share, index) => (share > 0 ? [index] : []));
  if (JSON.stringify(serves) !== JSON.stringify(expected)) {
    await until(`only ${expected} serve`, async () => {
      const now = (await shares(12)).flatMap((share, index) => (share > 0 ? [index] : []));
      return JSON.stringify(now) === JSON.stringify(expected);
    });
  }
}

test('requests are spread over all of them', async () => {
  await untilOnly([0, 1, 2]);
  expect(await shares(30)).toEqual([10, 10, 10]);
});

test('who is busy gets less', async () => {
  await untilOnly([0, 1, 2]);
  const held: (() => void)[] = [];
  instances[0]!.answer = (request, response) => held.push(() => sayOk(request, response));
  const first = Array.from({ length: 3 }, ask);
  await until('one of them is held', () => held.length > 0);
  expect((await shares(12))[0]).toBe(0);
  for (const answer of held) answer();
  await Promise.all(first);
});

/** At once: unused for four seconds they would be closed anyway. */
const noConnection = (index: number) =>
  until(`nothing is open to ${index}`, () => instances[index]!.connections === 0, 1_500);

test('one that comes is used once it is ready, one that goes has no connection left', async () => {
  named = addresses.slice(0, 2);
  await untilOnly([0, 1]);
  const before = instances[2]!.requests;
  instances[2]!.readiness = 'unready';
  const state = { isAsking: true };
  const asking = (async () => {
    while (state.isAsking) await ask();
  })();
  named = addresses.slice(1);
  await untilOnly([1]);
  state.isAsking = false;
  await asking;
  await noConnection(0);
  expect(instances[2]!.requests).toBe(before);
  instances[2]!.readiness = 'ready';
  await untilOnly([1, 2]);
});

test('one that is about to stop gets nothing new, though it still listens', async () => {
  await untilOnly([0, 1, 2]);
  instances[1]!.readiness = 'unready';
  await untilOnly([0, 2]);
  await noConnection(1);
});

test('one that is dead is left out, and no request notices', async () => {
  await untilOnly([0, 1, 2]);
  await instances[1]!.close();
  // Kept connections broke, and new ones are refused: a POST is safe where it was never sent.
  const statuses = await Promise.all(Array.from({ length: 12 }, post));
  expect(statuses.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 200));
  await untilOnly([0, 2]);
});

test('one that hangs is left out', async () => {
  await untilOnly([0, 1, 2]);
  instances[1]!.readiness = 'silent';
  await untilOnly([0, 2]);
});

test('when none is ready they are asked nevertheless: what they say is better than a guess', async () => {
  for (const each of instances) each.readiness = 'unready';
  await until('health knows', async () => {
    const response = await fetch(`${gateway.origin}/health`);
    const { services } = (await response.json()) as { services: Record<string, string> };
    return services['auth'] === 'down';
  });
  expect((await shares(30)).every((share) => share > 0)).toBe(true);
});

test('a name that cannot be resolved any more stands for whom it stood for', async () => {
  await untilOnly([0, 1, 2]);
  named = [];
  instances[0]!.readiness = 'unready';
  await untilOnly([1, 2]);
});

test('a hostname whose lookup hangs is looked up once; health and requests do not wait for it', async () => {
  const lookups: string[] = [];
  const answer = Promise.withResolvers<string[]>();
  const own = await startGateway({
    services: { auth: `http://slow.test:${port}`, letters: `http://slow.test:${port}` },
    resolve: (hostname) => {
      lookups.push(hostname);
      return answer.promise;
    },
    timeouts: { connect: 200, connectTotal: 500 },
  });
  closers.push(own.close);
  const get = (path: string) => fetch(own.origin + path, { signal: AbortSignal.timeout(30_000) });
  expect(await (await get('/health')).json()).toMatchObject({ services: { auth: 'down', letters: 'down' } });
  const replies = await Promise.all(Array.from({ length: 10 }, () => get('/.well-known/jwks.json')));
  expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 503));
  // Several more rounds of resolving and probing begin.
  await sleep(4_000);
  expect(lookups.filter((hostname) => hostname === 'slow.test')).toHaveLength(1);
  answer.resolve(addresses);
  await until('the addresses are used', async () => (await get('/.well-known/jwks.json')).status === 200);
});

test('before a name is resolved it is connected to as it is', () => {
  const never = () => new Promise<string[]>(() => undefined);
  const timeouts = { connect: 1, connectTotal: 1, response: 1, drain: 1, idle: 1 };
  const own: Instances = createInstances(new URL('http://somewhere.test'), timeouts, 1, never);
  closers.push(own.stop);
  expect(own.choose().address).toBe('somewhere.test');
});
