import { Stopped, printProblem } from './problem.ts';

/**
 * Runs `work`, which resolves with the exit code, and ends the process. Aborts its signal on Ctrl-C, SIGTERM, SIGHUP, or
 * when the bootstrap process that started this one ends; the exit code is then `codeWhenStopped`.
 */
export async function untilStopped(
  work: (signal: AbortSignal) => Promise<number>,
  codeWhenStopped: number,
): Promise<never> {
  const controller = new AbortController();
  const stop = (): void => controller.abort(new Stopped());
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
  process.on('disconnect', stop);
  process.channel?.unref();
  // The terminal may be closed; ignore that, so that the cleanup still runs.
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
