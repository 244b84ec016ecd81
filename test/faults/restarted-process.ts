import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { environmentWith } from '../../deploy/local/config.ts';
import type { ProcessSpec } from '../../deploy/local/supervised.ts';
import { until } from '../support/wait.ts';

const pauseMs = 500;

/** Starts a process, and restarts it whenever it ends, as a service manager does. */
export async function startRestarted(spec: ProcessSpec) {
  const { command, args, cwd, env, stopSignal, ready, name } = spec;
  let child: ChildProcess | undefined;
  const stopping = new AbortController();
  const kill = () => child?.kill('SIGKILL');
  process.once('exit', kill);

  const running = (async () => {
    while (!stopping.signal.aborted) {
      child = spawn(command, args, { cwd, env: environmentWith(env?.() ?? {}), stdio: 'ignore' });
      await once(child, 'exit');
      child = undefined;
      await sleep(pauseMs);
    }
  })();
  await until(`${name} is ready`, () => ready().then(() => true));
  return {
    isUp: () => child !== undefined,
    async stop(): Promise<void> {
      stopping.abort();
      child?.kill(stopSignal);
      await running;
      process.removeListener('exit', kill);
    },
  };
}
