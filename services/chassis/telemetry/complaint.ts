import { outsideContext } from '../context.ts';
import type { Logger } from '../logger.ts';

const everyMs = 60_000;

/** Says that traces are lost: the first time, and then once a minute at most, with how many batches it were. */
export function createComplaint(logger: Logger, now = () => performance.now()) {
  let saidAt = -Infinity;
  let batches = 0;
  return (error: unknown): void => {
    batches += 1;
    if (now() - saidAt < everyMs) return;
    // It is nobody's request that fails.
    outsideContext(() => logger.warn({ error, batches }, 'traces cannot be sent and are dropped'));
    saidAt = now();
    batches = 0;
  };
}
