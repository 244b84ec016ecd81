import { setTimeout as sleep } from 'node:timers/promises';

/** A refusal is answered no earlier after the request. Ms. */
const shortest = 400;
/** However slow the others were. */
const longest = 3_000;
/** Timers may be early by a fraction of a millisecond, so the clock is asked. `time` as performance.now(). */
async function notBefore(time: number): Promise<void> {
  for (let left; (left = time - performance.now()) > 0;) await sleep(Math.ceil(left));
}

/**
 * Makes all refusals take the same time, so that it does not tell what was wrong: a fixed one that is longer than any
 * check takes or, where the machine is too slow or busy for that, as long as the slowest of late took: of the last
 * `memory` ms at least, of twice that at most.
 */
export function createRefusals(memory = 60_000) {
  let since = performance.now();
  let [slowest, slowestBefore] = [0, 0];

  /** To be awaited last before a refusal is answered. `start`: when the request came, as performance.now(). */
  return async (start: number): Promise<void> => {
    const now = performance.now();
    if (now - since > memory) {
      slowestBefore = now - since > 2 * memory ? 0 : slowest;
      [slowest, since] = [0, now];
    }
    slowest = Math.max(slowest, Math.min(now - start, longest));
    await notBefore(start + Math.max(shortest, slowest, slowestBefore));
  };
}
