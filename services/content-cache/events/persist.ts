import { setTimeout as sleep } from 'node:timers/promises';

const firstPauseMs = 50;
/** Redis is tried again once a second anyway. */
const longestPauseMs = 1_000;

/**
 * Tries until it works: an event is never skipped because something is away. Throws only when `signal` ends it.
 * `onFirstFailure` hears why it did not work at once.
 */
export async function persist<T>(
  signal: AbortSignal,
  attempt: () => Promise<T>,
  onFirstFailure: (error: unknown) => void,
): Promise<T> {
  for (let pause = firstPauseMs; ; pause = Math.min(pause * 2, longestPauseMs)) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      if (pause === firstPauseMs) onFirstFailure(error);
    }
    await sleep(pause, undefined, { signal });
  }
}
