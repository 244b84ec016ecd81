import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { until } from './wait.ts';

/** Kills a child process with SIGKILL, unless it has ended. Resolves once it has ended. */
export async function killed(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** Starts a server program and waits until `readyUrl` returns a status below 500. `stop` sends SIGKILL. */
export async function startServer(
  file: string,
  args: string[],
  readyUrl: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ child: ChildProcess; stop(): Promise<void> }> {
  const child = spawn(file, args, { stdio: ['ignore', 'inherit', 'inherit'], env });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const exited = once(child, 'exit');
  const died = exited.then(([code]) => Promise.reject(new Error(`${file} ended with ${code}`)));
  died.catch(() => undefined);
  await Promise.race([until(`${file} is ready`, async () => (await fetch(readyUrl)).status < 500), died]);
  async function stop(): Promise<void> {
    await killed(child);
    process.removeListener('exit', kill);
  }
  return { child, stop };
}
