import { stackFilePath } from '../../deploy/local/config.ts';
import { services } from '@content-platform/contract';
import { writePrivate } from '../../deploy/local/state.ts';
import type { Stack } from '../../deploy/local/stack-file.ts';
import {
  asOwner,
  containersOf,
  describeProcess,
  docker,
  published,
  untilHealthy,
  up,
} from '../compose/docker.ts';
import type { Balancer } from './balancer.ts';

/** The platform's processes in these stacks, with their number of containers. */
export const processes = { gateway: 2, 'content-cache': 3, auth: 1, devices: 1, letters: 1 };

/** Returns the public URLs of all running gateways, except for one container. */
export async function gateways(without?: string): Promise<string[]> {
  const left = (await containersOf('gateway')).filter((container) => container !== without);
  return Promise.all(left.map(async (container) => `http://${await published(container, 8080)}`));
}

/** Returns every running process as in stack.json; the second one of a service is `<service>-2`. */
async function describeProcesses(): Promise<Stack['services']> {
  const named = services.filter(({ name }) => name in processes);
  const each = named.map(async ({ name, port }) => {
    const described = (await containersOf(name)).map((container) => describeProcess(container, port));
    return (await Promise.all(described)).map(
      (process, index) => [index === 0 ? name : `${name}-${index + 1}`, process] as const,
    );
  });
  return Object.fromEntries((await Promise.all(each)).flat());
}

/** Writes the current stack.json with the balancer as gateway, and lets the balancer use every gateway. */
export async function lookAgain(balancer: Balancer): Promise<void> {
  const [platform, logs] = await asOwner(`127.0.0.1:${process.env['TEST_POSTGRES_PORT']}`);
  const brokers = ['TEST_KAFKA_PORT', 'TEST_KAFKA_2_PORT', 'TEST_KAFKA_3_PORT'].flatMap((name) =>
    process.env[name] ? [`127.0.0.1:${process.env[name]}`] : [],
  );
  const stack: Stack = {
    gateway: balancer.url,
    postgres: platform,
    logs,
    redis: process.env['TEST_REDIS_URL']!,
    kafka: brokers.join(','),
    services: await describeProcesses(),
  };
  writePrivate(stackFilePath(), stack);
  await balancer.use(await gateways());
}

/** Restarts every process in turn. A single process first gets a second container, as in a release. */
export async function restartEach(balancer: Balancer): Promise<void> {
  for (const [service, count] of Object.entries(processes)) {
    const old = await containersOf(service);
    if (count === 1) await up('--scale', `${service}=2`, service);
    for (const container of old) {
      if (service === 'gateway') await balancer.use(await gateways(container));
      if (count === 1) {
        await docker(['stop', container]);
        await docker(['rm', container]);
      } else {
        await docker(['restart', container]);
        await untilHealthy(container);
      }
      if (service === 'gateway') await balancer.use(await gateways());
    }
  }
  await lookAgain(balancer);
}
