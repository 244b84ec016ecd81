import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT, stackFilePath } from '../../deploy/local/config.ts';
import { freePort } from '../../deploy/local/ports.ts';
import { lastLines, runCommand } from '../../deploy/local/run-command.ts';
import type { Stack } from '../../deploy/local/stack-file.ts';
import { writePrivate } from '../../deploy/local/state.ts';
import { internalPortOffset, services } from '@content-platform/contract';
import { until } from '../support/wait.ts';

/** Returns the output. The environment names the project and its files. @throws Error with the end of the output */
export async function docker(args: string[], signal?: AbortSignal): Promise<string> {
  const { code, output } = await runCommand('docker', args, { cwd: ROOT, ...(signal && { signal }) });
  if (code !== 0) throw new Error(`docker ${args.join(' ')}: ${lastLines(output, 5).join('\n')}`);
  return output.trim();
}

export const compose = (...args: string[]): Promise<string> => docker(['compose', ...args]);

/** Starts containers and waits until they are healthy; existing ones stay. */
export const up = (...args: string[]): Promise<string> =>
  compose('up', '--detach', '--wait', '--no-build', '--no-deps', '--no-recreate', ...args);

/** Returns a free port for each variable of the Compose files that publishes one. */
export async function freePorts(): Promise<Record<string, string>> {
  const published = ['GATEWAY', 'PROMETHEUS', 'ALERTMANAGER', 'GRAFANA', 'JAEGER'];
  const names = [...published, 'TEST_POSTGRES', 'TEST_REDIS', 'TEST_KAFKA'].map((name) => `${name}_PORT`);
  const ports = new Set<number>();
  while (ports.size < names.length) ports.add(await freePort());
  return Object.fromEntries([...ports].map((port, index) => [names[index]!, String(port)]));
}

/** Returns the published address of a container's port, which changes with each start. */
export const published = async (container: string, port: number): Promise<string> =>
  (await docker(['port', container, String(port)])).split('\n')[0]!;

/** Returns the URLs of both databases with the owner's credentials. */
export async function asOwner(address: string): Promise<[platform: string, logs: string]> {
  const password = await compose('exec', '-T', 'postgres', 'cat', '/run/secrets/platform-password');
  const urlOf = (database: string) => `postgres://platform:${password}@${address}/${database}`;
  return [urlOf('platform'), urlOf('logs')];
}

/** Returns the stack.json entry of a process. */
export async function describeProcess(container: string, port: number): Promise<Stack['services'][string]> {
  const [open, internal] = await Promise.all(
    [port, port + internalPortOffset].map((one) => published(container, one)),
  );
  return { public: `http://${open}`, internal: `http://${internal}`, pid: 0 };
}

/** Returns the current stack.json of the containers, with the first container of each service. */
export async function describeStack(): Promise<Stack> {
  const first = async (service: string) => (await containersOf(service))[0]!;
  const postgres = await published(await first('postgres'), 5432);
  const redis = await published(await first('redis'), 6379);
  const [platform, logs] = await asOwner(postgres);
  const addresses = services.map(
    async ({ name, port }) => [name, await describeProcess(await first(name), port)] as const,
  );
  return {
    gateway: `http://${await published(await first('gateway'), 8080)}`,
    postgres: platform,
    logs,
    redis: `redis://:${await compose('exec', '-T', 'redis', 'cat', '/run/secrets/password')}@${redis}`,
    kafka: await published(await first('kafka'), 19092),
    services: Object.fromEntries(await Promise.all(addresses)),
  };
}

export async function writeStack(): Promise<void> {
  writePrivate(stackFilePath(), await describeStack());
}

export async function containersOf(service: string): Promise<string[]> {
  return (await compose('ps', '-q', service)).split('\n').filter(Boolean);
}

export async function untilHealthy(container: string): Promise<void> {
  const health = ['inspect', '--format', '{{.State.Health.Status}}', container];
  await until(`${container} is healthy`, async () => (await docker(health)) === 'healthy', 120_000);
}

/** Kills a container and starts it again after some seconds, with its data. */
export async function killFor(container: string, seconds: number): Promise<void> {
  await docker(['kill', container]);
  await sleep(seconds * 1_000);
  await docker(['start', container]);
  await untilHealthy(container);
}
