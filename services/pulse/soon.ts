import { setTimeout as sleep } from 'node:timers/promises';

const withinMs = 2_000;

/** What `work` resolves to; null when it fails, or takes longer than a page waits for a part of it. */
export function soon<T>(work: Promise<T>): Promise<T | null> {
  return Promise.race([work.catch(() => null), sleep(withinMs, null, { ref: false })]);
}
