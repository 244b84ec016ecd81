import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { killed } from '../../../test/support/server.ts';
import type { TestServiceOptions } from './service.ts';

const main = fileURLToPath(new URL('service-process.ts', import.meta.url));

/** Runs the service in a separate process. `onLine` gets each log line of this process and of its replacements. */
export function startKilledService(
  options: TestServiceOptions,
  onLine: (line: Record<string, unknown>) => void,
) {
  const argument = JSON.stringify(options);
  function start() {
    const state = { startedAt: performance.now(), hasStarted: false, hasJoined: false };
    const child = spawn(process.execPath, [main, argument], { stdio: ['ignore', 'pipe', 'inherit'] });
    createInterface({ input: child.stdout }).on('line', (line) => {
      // The last line of a killed process may be cut.
      if (!line.endsWith('}')) return;
      const entry = JSON.parse(line) as Record<string, unknown>;
      if (entry['message'] === 'test service started') state.hasStarted = true;
      if (entry['message'] === 'joined the consumer group') state.hasJoined = true;
      onLine(entry);
    });
    return { state, kill: () => killed(child) };
  }
  let current = start();
  const killOnExit = () => void current.kill();
  process.once('exit', killOnExit);
  return {
    /** The start of the current process, by performance.now(). */
    startedAt: () => current.state.startedAt,
    hasStarted: () => current.state.hasStarted,
    /** Whether the current process has joined the consumer group. */
    hasJoined: () => current.state.hasJoined,
    /** Kills the process with SIGKILL and starts another one. */
    async killAndReplace(): Promise<void> {
      await current.kill();
      current = start();
    },
    async stop(): Promise<void> {
      process.removeListener('exit', killOnExit);
      await current.kill();
    },
  };
}
