import { setTimeout as sleep } from 'node:timers/promises';

/** No failure is returned earlier after its request, in ms. */
const shortestMs = 400;
/** The longest that failures wait for slow ones, in ms. */
const longestMs = 3_000;
const memoryMs = 60_000;

/** Where the times come from; tests pass in their own. `now` in ms. */
export interface FailureClock {
  now(): number;
  sleep(ms: number): Promise<unknown>;
}

const systemClock: FailureClock = { now: () => performance.now(), sleep };

/** Awaited last before a failure is returned. `start`: when the request came, as performance.now(). */
export type EqualizeFailureTime = (start: number) => Promise<void>;

/**
 * Makes failed logins take equally long, so that their time does not tell what was wrong: 400 ms, which is longer than
 * any check, or as long as the slowest failure of the last one to two minutes when the machine is slower.
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
    // Timers may fire a fraction of a millisecond early, so the clock is read again.
    for (let left; (left = end - clock.now()) > 0;) await clock.sleep(Math.ceil(left));
  };
}
