import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { ROOT } from '../../../deploy/local/config.ts';
import { bareEnvironment } from '../../support/processes.ts';
import { killed } from '../../support/server.ts';

const children: ChildProcess[] = [];

/** Starts a process without the developer's environment. Discards its logs: reading them would distort the figures. */
export function start(command: string, args: string[], env: Record<string, string> = {}, ...ipc: 'ipc'[]) {
  const stdio: StdioOptions = ['ignore', 'ignore', 'inherit', ...ipc];
  const child = spawn(command, args, { cwd: ROOT, env: { ...bareEnvironment, ...env }, stdio });
  children.push(child);
  return child;
}

export const startNode = (script: string, env: Record<string, string>, flags = process.execArgv) =>
  start(process.execPath, [...flags, join(ROOT, script)], env);

/** Starts a script that receives messages. */
export const startHelper = (script: string, env: Record<string, string> = {}) =>
  start(process.execPath, [...process.execArgv, join(ROOT, script)], env, 'ipc');

/** Starts a load generator in its own process. It receives jobs and returns the results of each. */
export function startLoad<Job extends object, Seen>(script: string) {
  const child = startHelper(script);
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('the load ended: see above')));
  ended.catch(() => undefined);
  return {
    pid: child.pid!,
    post: (message: object) => void child.send(message),
    async send(job: Job): Promise<Seen> {
      child.send(job);
      const [seen] = (await Promise.race([once(child, 'message'), ended])) as [Seen];
      return seen;
    },
  };
}
export type Load<Job extends object, Seen> = ReturnType<typeof startLoad<Job, Seen>>;

process.once('exit', () => children.forEach((child) => child.kill('SIGKILL')));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

export async function stopAll(): Promise<void> {
  await Promise.all(children.map(killed));
}
