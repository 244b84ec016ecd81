import { outsideContext } from '../context.ts';
import type { Logger } from '../logger.ts';

const intervalMs = 60_000;

/** Returns a handler that logs lost traces: the first time, then at most once a minute, with the number of batches. */
export function createThrottledWarning(logger: Logger, now = () => performance.now()) {
  let loggedAt = -Infinity;
  let batches = 0;
  return (error: unknown): void => {
    batches += 1;
    if (now() - loggedAt < intervalMs) return;
    // The batch belongs to no single request, so the line must not carry a request id.
    outsideContext(() => logger.warn({ error, batches }, 'collector unreachable; traces were dropped'));
    loggedAt = now();
    batches = 0;
  };
}
