import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { ROOT } from '../../../deploy/local/config.ts';
import { bareEnvironment } from '../../support/processes.ts';

const children: ChildProcess[] = [];

/**
 * Starts a process without the developer's environment. Its logs are discarded, because reading them would distort the
 * measurement.
 */
export function start(
  command: string,
  args: string[],
  env: Record<string, string> = {},
  stdio: StdioOptions = ['ignore', 'ignore', 'inherit'],
): ChildProcess {
  const child = spawn(command, args, { cwd: ROOT, env: { ...bareEnvironment, ...env }, stdio });
  children.push(child);
  return child;
}

/** Starts a script with this Node. */
export const startNode = (script: string, env: Record<string, string>, flags: readonly string[] = []) =>
  start(process.execPath, [...flags, join(ROOT, script)], env);

/** Starts a script that receives messages. */
export const startHelper = (script: string, env: Record<string, string> = {}) =>
  start(process.execPath, [...process.execArgv, join(ROOT, script)], env, [
    'ignore',
    'ignore',
    'inherit',
    'ipc',
  ]);

process.once('exit', () => children.forEach((child) => child.kill('SIGKILL')));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

/** Ends every started process. */
export async function stopAll(): Promise<void> {
  const running = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  await Promise.all(
    running.map((child) => {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      return gone;
    }),
  );
}
