import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { TestServiceOptions } from './service.ts';

const main = fileURLToPath(new URL('service-process.ts', import.meta.url));

export interface KilledService {
  /** When the process that runs now was started, by performance.now(). */
  startedAt(): number;
  /** Whether that one has joined the consumer group. */
  hasJoined(): boolean;
  /** kill -9; resolves when it is gone and another process has been started in its place. */
  killAndReplace(): Promise<void>;
  stop(): Promise<void>;
}

/** The service in a process of its own, to be killed. `onLine` hears its log, also that of those that take its place. */
export function startKilledService(
  options: TestServiceOptions,
  onLine: (line: Record<string, unknown>) => void,
): KilledService {
  // Only what can be sent.
  const argument = JSON.stringify(options);
  function start() {
    const state = { startedAt: performance.now(), hasJoined: false };
    const child = spawn(process.execPath, [main, argument], { stdio: ['ignore', 'pipe', 'inherit'] });
    createInterface({ input: child.stdout }).on('line', (line) => {
      // The last line of one that was killed may be half of one.
      if (!line.endsWith('}')) return;
      const said = JSON.parse(line) as Record<string, unknown>;
      if (said['message'] === 'joined the consumer group') state.hasJoined = true;
      onLine(said);
    });
    const exited = once(child, 'exit');
    return { state, kill: () => child.kill('SIGKILL'), exited };
  }
  let current = start();
  const killOnExit = () => void current.kill();
  process.once('exit', killOnExit);
  async function kill(): Promise<void> {
    current.kill();
    await current.exited;
  }
  return {
    startedAt: () => current.state.startedAt,
    hasJoined: () => current.state.hasJoined,
    async killAndReplace() {
      await kill();
      current = start();
    },
    async stop() {
      process.removeListener('exit', killOnExit);
      await kill();
    },
  };
}
