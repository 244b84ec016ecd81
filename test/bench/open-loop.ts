import { setTimeout as sleep } from 'node:timers/promises';

export interface Outcome {
  /** Time from the moment at which the call was due, or began if a timer ended early, to its end. */
  ms: number;
  error?: string;
}

/**
 * Calls `send` `perSecond` times a second for `seconds` seconds, each time when it is due, regardless of earlier calls.
 * Resolves when all have ended.
 */
export async function openLoop(send: () => Promise<void>, perSecond: number, seconds: number) {
  const start = performance.now();
  const running: Promise<Outcome>[] = [];
  for (let n = 0; n < perSecond * seconds; n += 1) {
    const due = start + (n * 1_000) / perSecond;
    const early = due - performance.now();
    if (early > 0) await sleep(early);
    // A timer ends up to two milliseconds early.
    const from = Math.min(due, performance.now());
    const outcome = (error?: Error): Outcome => ({
      ms: performance.now() - from,
      ...(error && { error: error.message }),
    });
    running.push(send().then(() => outcome(), outcome));
  }
  return Promise.all(running);
}
