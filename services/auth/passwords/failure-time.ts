import { setTimeout as sleep } from 'node:timers/promises';

/** Minimum duration of a failed request, in ms. */
const shortestMs = 400;
/** Maximum duration to which failures are delayed, in ms. */
const longestMs = 3_000;
const memoryMs = 60_000;

/** The clock; tests replace it. `now` in ms. */
const systemClock = { now: () => performance.now(), sleep: (ms: number): Promise<unknown> => sleep(ms) };

/** Await it last before returning a failure. `start` is the performance.now() time at which the request arrived. */
export type EqualizeFailureTime = (start: number) => Promise<void>;

/**
 * Makes failed logins equally long, which hides the reason: 400 ms, or as long as the slowest failure of the last 1 to
 * 2 minutes, but at most 3 s.
 */
export function createEqualizeFailureTime(clock = systemClock): EqualizeFailureTime {
  let since = clock.now();
  let [slowest, slowestBefore] = [0, 0];

  return async (start) => {
    const now = clock.now();
    if (now - since > memoryMs) {
      slowestBefore = now - since > 2 * memoryMs ? 0 : slowest;
      [slowest, since] = [0, now];
    }
    slowest = Math.max(slowest, Math.min(now - start, longestMs));
    const end = start + Math.max(shortestMs, slowest, slowestBefore);
    // Timers may fire a fraction of a millisecond early, so the remaining time is computed again.
    for (let left; (left = end - clock.now()) > 0;) await clock.sleep(Math.ceil(left));
  };
}
