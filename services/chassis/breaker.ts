import type { Logger } from './logger.ts';

/** Whether something that failed is worth asking. */
export interface Breaker {
  allows(): boolean;
  /** `error`: why it did not work. */
  report(worked: boolean, error?: unknown): void;
}

const pauseMs = 1_000;

/**
 * After a failure the other side is asked once a second, by one request, until it answers: one that hangs then costs one
 * request a second its timeout, and the others nothing. `instead` is logged: what happens meanwhile.
 */
export function createBreaker(logger: Logger, instead: string): Breaker {
  let failing = false;
  let nextTryAt = 0;
  return {
    allows() {
      if (!failing) return true;
      if (performance.now() < nextTryAt) return false;
      nextTryAt = performance.now() + pauseMs;
      return true;
    },
    report(worked, error) {
      if (!worked && !failing) {
        nextTryAt = performance.now() + pauseMs;
        logger.warn({ error }, instead);
      }
      failing = !worked;
    },
  };
}
