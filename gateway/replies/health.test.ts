import { afterEach, expect, test } from '@jest/globals';
import { startGateway, type TestGateway } from '../testing/gateway.ts';
import { startInstance, type TestInstance } from '../testing/instance.ts';
import { until, within } from '../../test/support/wait.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function start(readiness: TestInstance['readiness']): Promise<TestInstance> {
  const instance = await startInstance({ readiness });
  closers.push(instance.close);
  return instance;
}

async function gatewayBefore(services: Record<string, string>): Promise<TestGateway> {
  const gateway = await startGateway({ services });
  closers.push(gateway.close);
  return gateway;
}

async function healthOf({ origin }: TestGateway) {
  const response = await fetch(`${origin}/health`);
  expect(response.status).toBe(200);
  return (await response.json()) as { status: string; services: Record<string, string> };
}

test('each service is up or down by its readiness', async () => {
  const [ready, unready] = [await start('ready'), await start('unready')];
  const gateway = await gatewayBefore({
    auth: ready.url,
    letters: unready.url,
    devices: 'http://127.0.0.1:1',
  });
  await until('the one that is ready is up', async () => {
    return (await healthOf(gateway)).services['auth'] === 'up';
  });
  expect(await healthOf(gateway)).toMatchObject({
    status: 'degraded',
    services: { auth: 'up', letters: 'down', devices: 'down' },
  });
  unready.readiness = 'ready';
  await until('the other is, too', async () => (await healthOf(gateway)).services['letters'] === 'up');
  ready.readiness = 'unready';
  await until('the first is not any more', async () => (await healthOf(gateway)).services['auth'] === 'down');
});

test('one that hangs is down, and nobody asks it twice at once, however many want to know', async () => {
  const hanging = await start('silent');
  const gateway = await gatewayBefore({ auth: hanging.url });
  const answers = await within('health', Promise.all(Array.from({ length: 50 }, () => healthOf(gateway))));
  expect(answers.every(({ services }) => services['auth'] === 'down')).toBe(true);
  expect(hanging.mostProbesAtOnce).toBe(1);
});
