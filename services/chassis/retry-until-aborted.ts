import { setTimeout as sleep } from 'node:timers/promises';

const firstPauseMs = 50;
const longestPauseMs = 1_000;

/**
 * Repeats `attempt` until it succeeds, with pauses of 50 ms doubling to 1 s. Throws only the reason of `signal`.
 * `onFirstFailure` is called with the error of the first attempt.
 */
export async function retryUntilAborted<T>(
  signal: AbortSignal,
  attempt: () => Promise<T>,
  onFirstFailure: (error: unknown) => void,
): Promise<T> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      if (pauseMs === firstPauseMs) onFirstFailure(error);
    }
    await sleep(pauseMs, undefined, { signal });
  }
}
