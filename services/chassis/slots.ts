import { unavailable } from './http-error.ts';

/** Gives a slot up; may be called more than once. */
export type Release = () => void;

export interface Slots {
  /** A slot; undefined when all are taken. */
  take(): Release | undefined;
  /**
   * Resolves when a slot is ours, in the order of asking. Rejects with 503 at once when too many wait already, and with
   * the signal's reason when that is aborted first.
   */
  wait(signal?: AbortSignal): Promise<Release>;
  /** Does `work` in a slot, for which it waits as `wait` does. */
  run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

/** At most `max` at a time, while at most `maxWaiting` wait. */
export function createSlots(max: number, maxWaiting = Infinity): Slots {
  let taken = 0;
  const waiting = new Set<(release: Release) => void>();

  function hold(): Release {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const [next] = waiting;
      // Handed on, not given back: nobody who comes later can get in between.
      if (next) next(hold());
      else taken -= 1;
    };
  }

  function take(): Release | undefined {
    if (taken >= max) return undefined;
    taken += 1;
    return hold();
  }

  function queue(signal?: AbortSignal): Promise<Release> {
    return new Promise((resolve, reject) => {
      const enter = (release: Release) => {
        waiting.delete(enter);
        signal?.removeEventListener('abort', leave);
        resolve(release);
      };
      const leave = () => {
        waiting.delete(enter);
        reject(signal!.reason as Error);
      };
      waiting.add(enter);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  async function wait(signal?: AbortSignal): Promise<Release> {
    signal?.throwIfAborted();
    const release = take();
    if (release) return release;
    if (waiting.size >= maxWaiting) throw unavailable('There is too much to do at the moment.');
    return queue(signal);
  }

  return {
    take,
    wait,
    async run(work, signal) {
      const release = await wait(signal);
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}
