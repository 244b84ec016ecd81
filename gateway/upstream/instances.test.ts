import { beforeEach, expect, test } from '@jest/globals';
import { freeRow } from '../../test/support/ports.ts';
import { until } from '../../test/support/wait.ts';
import { startInstance, type TestInstance } from '../testing/instance.ts';
import { sayOk } from '../testing/upstream.ts';
import { useTestGateway } from '../testing/use-test-gateway.ts';
import { timeouts } from '../timeouts.ts';
import { createInstances } from './upstream.ts';
import { createResolve } from './connect.ts';

const fixture = useTestGateway();
const addresses = ['127.0.0.1', '127.0.0.2', '127.0.0.3'];
let port: number;
let named: string[] | undefined;
let instances: TestInstance[];

beforeEach(async () => {
  port = await freeRow(1);
  instances = await Promise.all(addresses.map((address) => startInstance({ address, port })));
  for (const each of instances) fixture.closeLater(each.close);
  named = [...addresses];
  await fixture.start({
    services: { auth: `http://auth.test:${port}` },
    resolve: async (name) => (name !== 'auth.test' ? [name] : (named ?? Promise.reject(new Error('gone')))),
    // An idle connection is closed only if its instance is no longer used.
    timeouts: { probeInterval: 50, keepAlive: 60_000 },
  });
});

/** Returns how many of `count` requests, one after the other, each instance gets. */
async function shares(count: number): Promise<number[]> {
  const before = instances.map(({ requests }) => requests);
  for (let index = 0; index < count; index += 1) expect((await fixture.get()).status).toBe(200);
  return instances.map(({ requests }, index) => requests - before[index]!);
}

/** Waits until these instances get requests, and no other. */
async function untilOnly(...expected: number[]): Promise<void> {
  await until(`only ${expected} serve`, async () => {
    const serving = (await shares(12)).flatMap((share, index) => (share > 0 ? [index] : []));
    return serving.join() === expected.join();
  });
}

const untilNoConnection = (index: number) =>
  until(`nothing is open to ${index}`, () => instances[index]!.connections === 0);

test('distributes requests over all ready instances', async () => {
  await untilOnly(0, 1, 2);
  expect(await shares(30)).toEqual([10, 10, 10]);
});

test('sends fewer requests to a busy instance', async () => {
  await untilOnly(0, 1, 2);
  const held: (() => void)[] = [];
  instances[0]!.answer = (request, response) => held.push(() => sayOk(request, response));
  let answered = 0;
  const first = Array.from({ length: 3 }, () => fixture.get().finally(() => (answered += 1)));
  await until('one request is in progress', () => held.length === 1 && answered === 2);
  expect((await shares(12))[0]).toBe(0);
  for (const answer of held) answer();
  await Promise.all(first);
});

test('a new instance is used once it is ready, a removed one has no connection left', async () => {
  named = addresses.slice(0, 2);
  await untilOnly(0, 1);
  const before = instances[2]!.requests;
  instances[2]!.readiness = 'unready';
  named = addresses.slice(1);
  await untilOnly(1);
  await untilNoConnection(0);
  expect(instances[2]!.requests).toBe(before);
  instances[2]!.readiness = 'ready';
  await untilOnly(1, 2);
});

test('sends no new requests to an instance that is stopping but still listens', async () => {
  await untilOnly(0, 1, 2);
  instances[1]!.readiness = 'unready';
  await untilOnly(0, 2);
  await untilNoConnection(1);
});

test('skips a dead instance without a failed request', async () => {
  await untilOnly(0, 1, 2);
  await instances[1]!.close();
  // Pooled connections are closed and new connections are refused: repeating a POST is safe if it was never sent.
  const replies = await Promise.all(Array.from({ length: 12 }, () => fixture.post()));
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
  await untilOnly(0, 2);
});

test.each(['silent', 'switching'] as const)('skips a %s instance until it is ready', async (readiness) => {
  await untilOnly(0, 1, 2);
  instances[1]!.readiness = readiness;
  await untilOnly(0, 2);
  instances[1]!.readiness = 'ready';
  await untilOnly(0, 1, 2);
});

test('if no instance is ready, sends requests to all instances', async () => {
  for (const each of instances) each.readiness = 'unready';
  await until('/health reports the service as down', async () => {
    const health = await (await fixture.ask('/health')).text();
    return health.includes('"auth":"down"');
  });
  expect((await shares(30)).every((share) => share > 0)).toBe(true);
});

test('keeps the known addresses when the name can no longer be resolved', async () => {
  await untilOnly(0, 1, 2);
  named = undefined;
  instances[0]!.readiness = 'unready';
  await untilOnly(1, 2);
});

test('health and requests do not wait for a lookup that hangs', async () => {
  const answer = Promise.withResolvers<string[]>();
  await fixture.start({
    services: { auth: `http://slow.test:${port}` },
    resolve: async (hostname) => (hostname === 'slow.test' ? answer.promise : [hostname]),
    timeouts: { connect: 200, connectTotal: 500, probeInterval: 50 },
  });
  expect(await (await fixture.ask('/health')).json()).toMatchObject({ services: { auth: 'down' } });
  expect((await fixture.get()).status).toBe(503);
  answer.resolve(addresses);
  await until('the addresses are used', async () => (await fixture.get()).status === 200);
}, 15_000);

test('all calls share one hanging lookup', async () => {
  let lookups = 0;
  const answer = Promise.withResolvers<string[]>();
  const resolve = createResolve(() => {
    lookups += 1;
    return answer.promise;
  });
  expect(await Promise.all([resolve('slow.test'), resolve('slow.test')])).toEqual([[], []]);
  const third = resolve('slow.test');
  answer.resolve(addresses);
  expect(await third).toEqual(addresses);
  expect(lookups).toBe(1);
  await resolve('slow.test');
  expect(lookups).toBe(2);
});

test('before a name is resolved, connections are opened to the name', () => {
  const never = () => new Promise<string[]>(() => undefined);
  const unresolved = createInstances(new URL('http://somewhere.test'), timeouts, 1, never);
  fixture.closeLater(unresolved.stop);
  expect(unresolved.choose().address).toBe('somewhere.test');
});
