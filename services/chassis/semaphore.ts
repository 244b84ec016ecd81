import { unavailable } from './http-error.ts';

/** Frees a slot; further calls have no effect. */
export type Release = () => void;

export interface Semaphore {
  /** Acquires a slot; undefined if none is free. */
  tryAcquire(): Release | undefined;
  /** Waits for a slot, first come first served. Throws 503 if too many wait already, or the reason of `signal`. */
  acquire(signal?: AbortSignal): Promise<Release>;
  /** Waits for a slot as `acquire` does, and holds it during `work`. */
  run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

/** Creates `max` slots, for which at most `maxWaiting` calls may wait. */
export function createSemaphore(max: number, maxWaiting = Infinity): Semaphore {
  let taken = 0;
  const waiting = new Set<(release: Release) => void>();

  function createRelease(): Release {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const [next] = waiting;
      // The slot passes directly to the next waiting call, so that a later call cannot overtake it.
      if (next) next(createRelease());
      else taken -= 1;
    };
  }

  function tryAcquire(): Release | undefined {
    if (taken >= max) return undefined;
    taken += 1;
    return createRelease();
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

  async function acquire(signal?: AbortSignal): Promise<Release> {
    signal?.throwIfAborted();
    const release = tryAcquire();
    if (release) return release;
    if (waiting.size >= maxWaiting) throw unavailable('The server is overloaded. Retry later.');
    return queue(signal);
  }

  return {
    tryAcquire,
    acquire,
    async run(work, signal) {
      const release = await acquire(signal);
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}
