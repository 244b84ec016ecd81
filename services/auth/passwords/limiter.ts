import { unavailable } from '@content-platform/chassis';

export type Limiter = <T>(work: () => Promise<T>) => Promise<T>;

/** Runs `running` pieces of work at a time, lets `waiting` more wait, and refuses the rest with 503. */
export function createLimiter(running: number, waiting: number): Limiter {
  let free = running;
  const queue: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free -= 1;
    else if (queue.length >= waiting) throw unavailable('Too many are logging in at the moment.');
    // Who is called from the queue takes over the place of the one who left.
    else await new Promise<void>((resolve) => queue.push(resolve));
    try {
      return await work();
    } finally {
      const next = queue.shift();
      if (next) next();
      else free += 1;
    }
  };
}
