import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Asks until the answer is something other than false, null or undefined, or a throw. Throws with `what` and the last
 * reason after `limitMs`: a limit that means "hung", not "slow".
 */
export async function until<T>(
  what: string,
  ask: () => Promise<T | false | null | undefined> | T | false | null | undefined,
  limitMs = 30_000,
): Promise<T> {
  const end = performance.now() + limitMs;
  let reason: unknown;
  while (performance.now() < end) {
    try {
      const answer = await ask();
      if (answer !== false && answer !== null && answer !== undefined) return answer;
      reason = `it is ${String(answer)}`;
    } catch (error) {
      reason = error;
    }
    await sleep(25);
  }
  throw new Error(`waited ${limitMs} ms until ${what}`, { cause: reason });
}
