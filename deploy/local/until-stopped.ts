import { Stopped, printProblem } from './problem.ts';

/**
 * Runs `work` until it ends or the user wants it to: Ctrl-C, SIGTERM, SIGHUP, or the end of the bootstrap that started
 * this process. `work` is told by its signal, and cleans up before it returns or throws. Then the process ends.
 * @param work resolves with the exit code
 * @param codeWhenStopped the exit code when the user has stopped it
 */
export async function untilStopped(
  work: (signal: AbortSignal) => Promise<number>,
  codeWhenStopped: number,
): Promise<never> {
  const controller = new AbortController();
  const stop = (): void => {
    if (!controller.signal.aborted) controller.abort(new Stopped());
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
  process.on('disconnect', stop);
  process.channel?.unref();
  // The terminal may be gone; that is no reason to leave things running.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  let code = 1;
  try {
    code = await work(controller.signal);
  } catch (error) {
    if (error instanceof Stopped) code = codeWhenStopped;
    else printProblem(error);
  }
  process.exit(code);
}
