import { expect, test } from '@jest/globals';
import { until } from '../../test/support/wait.ts';
import { startInstance, type TestInstanceOptions } from '../testing/instance.ts';
import { useTestGateway } from '../testing/use-test-gateway.ts';

const fixture = useTestGateway();
const timeouts = { probeInterval: 50 };

async function start(options: TestInstanceOptions) {
  const instance = await startInstance(options);
  fixture.closeLater(instance.close);
  return instance;
}

async function health() {
  const response = await fixture.ask('/health');
  expect(response.status).toBe(200);
  return (await response.json()) as { status: string; services: Record<string, string> };
}
const untilIs = (name: string, state: string) =>
  until(`${name} is ${state}`, async () => (await health()).services[name] === state);

test('reports each service as up or down by its readiness', async () => {
  const [ready, unready] = [await start({ readiness: 'ready' }), await start({ readiness: 'unready' })];
  const services = { auth: ready.url, letters: unready.url, devices: 'http://127.0.0.1:1' };
  await fixture.start({ services, timeouts });
  await untilIs('auth', 'up');
  expect(await health()).toMatchObject({
    status: 'degraded',
    services: { auth: 'up', letters: 'down', devices: 'down' },
  });
  unready.readiness = 'ready';
  await untilIs('letters', 'up');
  ready.readiness = 'unready';
  await untilIs('auth', 'down');
});

test('reports a hanging service as down and sends it one probe at a time', async () => {
  const hanging = await start({ readiness: 'silent' });
  await fixture.start({ services: { auth: hanging.url }, timeouts });
  const answers = await Promise.all(Array.from({ length: 50 }, health));
  expect(answers.every(({ services }) => services['auth'] === 'down')).toBe(true);
  expect(hanging.mostProbesAtOnce).toBe(1);
});
