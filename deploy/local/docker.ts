import { createHash } from 'node:crypto';
import { HOST } from './ports.ts';
import { onPath, runCommand } from './run-command.ts';
import type { State } from './state.ts';
import type { ProcessSpec } from './supervised.ts';

/** Returns whether Docker runs and has the image. Pulls a missing image. */
export async function hasImage(image: string, signal: AbortSignal): Promise<boolean> {
  if (onPath('docker') === undefined) return false;
  const succeeds = async (args: string[], within: number): Promise<boolean> =>
    (await runCommand('docker', args, { signal, within })).code === 0;
  return (
    (await succeeds(['version', '--format', '{{.Server.Version}}'], 10_000)) &&
    ((await succeeds(['image', 'inspect', image], 10_000)) || succeeds(['pull', '-q', image], 170_000))
  );
}

interface Container {
  name: string;
  image: string;
  port: number;
  /** The port in the container to which `port` of this machine leads. */
  containerPort: number;
  env?: Record<string, string>;
  command?: string[];
  /** Folder in the container whose data survives a restart of the container. */
  dataFolder?: string;
}

/** Runs a container as a process. Its name follows from the folder, so that the next start removes a leftover. */
export function containerSpec(state: State, container: Container, ready: () => Promise<void>): ProcessSpec {
  const { image, port, containerPort, env = {}, command = [], dataFolder } = container;
  const folder = createHash('sha256').update(state.folder).digest('hex').slice(0, 8);
  const name = `content-platform-${container.name}-${folder}`;
  const environment = Object.entries(env).flatMap(([key, value]) => ['-e', `${key}=${value}`]);
  const volume = dataFolder ? ['-v', `${name}:${dataFolder}`] : [];
  const publish = ['-p', `${HOST}:${port}:${containerPort}`];
  return {
    name: container.name,
    command: 'docker',
    args: ['run', '--rm', '--name', name, ...publish, ...volume, ...environment, image, ...command],
    cwd: state.folder,
    prepare: () => runCommand('docker', ['rm', '-f', name], { within: 20_000 }),
    ready,
    readyWithinMs: 60_000,
    stopSignal: 'SIGTERM',
  };
}
