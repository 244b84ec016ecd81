import type { Outcome } from './job.ts';

/** Ends this worker process. `process.exit` would wait for native code on other threads, such as an encoder. */
const end = () => process.kill(process.pid, 'SIGKILL');

/** Ends this worker process with its parent. Ignores Ctrl-C and the container's stop signal, which reach both processes. */
export function exitWithParent(): void {
  process.on('disconnect', end);
  // The parent may have ended while this process was loading its modules.
  if (!process.connected) end();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
}

/** Sends 'ready' once this worker process can accept jobs, then the outcome of each job. */
export function sendToParent(message: 'ready' | Outcome): void {
  process.send!(message, undefined, undefined, (error) => error && end());
}
