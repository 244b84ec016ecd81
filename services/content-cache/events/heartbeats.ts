import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs `work` and sends heartbeats meanwhile, so that the group keeps a member whose work outlasts the session timeout.
 * Ends with the work, with the first refused heartbeat (the group rebalances), or with `stopping`. Then `signal` aborts:
 * the work may continue briefly but must not commit.
 */
export async function withHeartbeats<T>(
  heartbeat: () => Promise<void>,
  intervalMs: number,
  stopping: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ending = new AbortController();
  const signal = AbortSignal.any([ending.signal, stopping]);
  async function beat(): Promise<never> {
    for (;;) {
      await sleep(intervalMs, undefined, { signal });
      await heartbeat();
    }
  }
  try {
    return await Promise.race([work(signal), beat()]);
  } finally {
    ending.abort();
  }
}
