import { setTimeout as sleep } from 'node:timers/promises';

const shortestPauseMs = 25;
const longestPauseMs = 250;

/**
 * Repeats the call until it returns a value other than false, null or undefined. After `limitMs`, which should mean
 * "hung" and not "slow", it throws with `what` and the last error. Pauses grow, so that long waits cause little load.
 */
export async function until<T>(
  what: string,
  ask: () => Promise<T | false | null | undefined> | T | false | null | undefined,
  limitMs = 60_000,
): Promise<T> {
  const start = performance.now();
  let reason: unknown;
  for (let passed = 0; passed < limitMs; passed = performance.now() - start) {
    try {
      const answer = await ask();
      if (answer !== false && answer !== null && answer !== undefined) return answer;
      reason = `it is ${String(answer)}`;
    } catch (error) {
      reason = error;
    }
    await sleep(Math.min(Math.max(passed / 10, shortestPauseMs), longestPauseMs));
  }
  throw new Error(`waited ${limitMs} ms until ${what}`, { cause: reason });
}

/** Settles like `promise`. Throws with `what` after `limitMs`: choose a limit that means "hung", not "slow". */
export async function within<T>(what: string, promise: Promise<T>, limitMs = 60_000): Promise<T> {
  const ended = new AbortController();
  const hung = sleep(limitMs, undefined, { signal: ended.signal }).then(() => {
    throw new Error(`waited ${limitMs} ms for ${what}`);
  });
  hung.catch(() => undefined);
  return Promise.race([promise, hung]).finally(() => ended.abort());
}
