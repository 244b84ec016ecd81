import type { Logger } from './logger.ts';

/** Decides whether to call a dependency that failed. */
export interface Breaker {
  allows(): boolean;
  report(worked: boolean, error?: unknown): void;
}

const pauseMs = 1_000;

/**
 * After a failure, allows one call a second until a call succeeds: if the dependency hangs, only that call waits for its
 * timeout. `message`, logged at the first failure, names the consequence.
 */
export function createBreaker(logger: Logger, message: string): Breaker {
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
        logger.warn({ error }, message);
      }
      failing = !worked;
    },
  };
}
