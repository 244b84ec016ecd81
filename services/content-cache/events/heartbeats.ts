import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Works while heartbeats go on beside it, so that the group keeps a member whose work takes longer than a session.
 * Ends with the work, with the first heartbeat that is refused (the group rebalances), or when `stopping` says so;
 * `signal` tells the work, which may then go on for a moment but must not commit.
 */
export async function withHeartbeats<T>(
  heartbeat: () => Promise<void>,
  everyMs: number,
  stopping: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, stopping]);
  async function beat(): Promise<never> {
    for (;;) {
      await sleep(everyMs, undefined, { signal });
      await heartbeat();
    }
  }
  try {
    return await Promise.race([work(signal), beat()]);
  } finally {
    over.abort();
  }
}
