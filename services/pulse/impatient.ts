import { setTimeout as sleep } from 'node:timers/promises';

const withinMs = 2_000;

/**
 * Asks for a part of a page: null when that fails, or takes longer than a page waits. After a failure pages do not wait
 * at all, while it is asked again for those that come later: a page that is slow itself would miss the target it shows.
 */
export function impatient<Args extends unknown[], T>(ask: (...args: Args) => Promise<T>) {
  let failing = false;
  return async (...args: Args): Promise<T | null> => {
    const answer = ask(...args).catch(() => null);
    const inTime = Promise.race([answer, sleep(withinMs, null, { ref: false })]).then((value) => {
      failing = value === null;
      return value;
    });
    return failing ? null : inTime;
  };
}
