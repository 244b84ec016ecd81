import { unavailable } from './http-error.ts';
import type { Logger } from './logger.ts';

/** Frees a slot; further calls have no effect. */
export type Release = () => void;

export type Semaphore = ReturnType<typeof createSemaphore>;

/** Creates `max` slots, for which at most `maxWaiting` calls may wait. */
export function createSemaphore(max: number, maxWaiting = Infinity) {
  let taken = 0;
  const waiting: ((release: Release) => void)[] = [];

  function createRelease(): Release {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const next = waiting.shift();
      // The slot passes directly to the next waiting call, so that a later call cannot overtake it.
      if (next) next(createRelease());
      else taken -= 1;
    };
  }

  /** Acquires a slot; undefined if none is free. */
  function tryAcquire(): Release | undefined {
    if (taken >= max) return undefined;
    taken += 1;
    return createRelease();
  }

  function queue(signal?: AbortSignal): Promise<Release> {
    return new Promise((resolve, reject) => {
      const enter = (release: Release) => {
        signal?.removeEventListener('abort', leave);
        resolve(release);
      };
      const leave = () => {
        waiting.splice(waiting.indexOf(enter), 1);
        reject(signal!.reason as Error);
      };
      waiting.push(enter);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  /** Waits for a slot, first come first served. Throws 503 if too many wait already, or the reason of `signal`. */
  async function acquire(signal?: AbortSignal): Promise<Release> {
    signal?.throwIfAborted();
    const release = tryAcquire();
    if (release) return release;
    if (waiting.length >= maxWaiting) throw unavailable('The server is overloaded. Retry later.');
    return queue(signal);
  }

  return {
    tryAcquire,
    acquire,
    /** Waits for a slot as `acquire` does, and holds it during `work`. */
    async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
      const release = await acquire(signal);
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}

/**
 * Returns a function that runs the work of a key once at a time. A call during the work gets its result or error, and
 * `joined` is then true. If the work fails after the `signal` given with it was aborted, a waiting call runs its own.
 */
export function singleFlight<T>() {
  const flights = new Map<string, { result: Promise<T>; signal: AbortSignal | undefined }>();

  return async (
    key: string,
    signal: AbortSignal | undefined,
    work: () => Promise<T>,
  ): Promise<{ value: T; joined: boolean }> => {
    for (let flight = flights.get(key); flight; flight = flights.get(key)) {
      try {
        return { value: await flight.result, joined: true };
      } catch (error) {
        if (!flight.signal?.aborted) throw error;
      }
    }
    const result = work().finally(() => flights.delete(key));
    flights.set(key, { result, signal });
    return { value: await result, joined: false };
  };
}

export type Breaker = ReturnType<typeof createBreaker>;

const pauseMs = 1_000;

/**
 * Allows one call a second to a dependency that failed, until a call succeeds: if it hangs, only that call waits.
 * `message`, logged at the first failure, names the consequence.
 */
export function createBreaker(logger: Logger, message: string) {
  let failing = false;
  let nextTryAt = 0;
  return {
    allows(): boolean {
      if (!failing) return true;
      if (performance.now() < nextTryAt) return false;
      nextTryAt = performance.now() + pauseMs;
      return true;
    },
    report(worked: boolean, error?: unknown): void {
      if (!worked && !failing) {
        nextTryAt = performance.now() + pauseMs;
        logger.warn({ error }, message);
      }
      failing = !worked;
    },
  };
}

/** Waits until all of `work` has settled. Then rejects with the first error, if any. */
export async function settleAll(work: Promise<unknown>[]): Promise<void> {
  await Promise.allSettled(work);
  await Promise.all(work);
}

/** Settles as `work` does, or resolves with `fallback` after `limitMs`. The work itself is not stopped. */
export async function withTimeout<T, F = undefined>(
  work: Promise<T>,
  limitMs: number,
  fallback = undefined as F,
): Promise<T | F> {
  const { promise, resolve } = Promise.withResolvers<F>();
  const timer = setTimeout(resolve, limitMs, fallback).unref();
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}
