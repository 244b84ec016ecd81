import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Asks until `condition` holds; a condition that throws does not hold.
 *
 * @param what completes "waited in vain for …"
 * @throws after `limitMs` milliseconds, with the condition's last error as the cause
 */
export async function waitFor(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 15_000,
): Promise<void> {
  const limit = performance.now() + limitMs;
  let cause: unknown;
  while (performance.now() < limit) {
    try {
      if (await condition()) return;
    } catch (error) {
      cause = error;
    }
    await sleep(10);
  }
  throw new Error(`waited in vain for ${what}`, { cause });
}
