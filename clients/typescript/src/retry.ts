import { PlatformError } from './errors.ts';
import { sleep } from './signals.ts';

const temporaryStatuses = [0, 429, 502, 503, 504];
const firstPauseMs = 500;
const longestPauseMs = 30_000;

/** Whether the same request can succeed later. */
export function isTemporary(error: unknown): error is PlatformError {
  if (!(error instanceof PlatformError)) return false;
  return temporaryStatuses.includes(error.status) || error.code === 'idempotency_key_in_use';
}

/** Returns the pause before the next try in ms: Retry-After, or longer after each failure. Random, to spread calls. */
export function pauseAfter({ retryAfter }: PlatformError, failures: number): number {
  if (retryAfter !== undefined) return retryAfter * 1000 + Math.random() * firstPauseMs;
  return Math.min(firstPauseMs * 2 ** failures, longestPauseMs) * (0.5 + Math.random() / 2);
}

/**
 * Calls `work` again after each temporary error, unless `mayRepeat` refuses the pause.
 * @throws the last error, and the signal's reason also during a pause
 */
export async function withRetries<T>(
  signal: AbortSignal | undefined,
  mayRepeat: (failures: number, pauseMs: number) => boolean,
  work: () => Promise<T>,
): Promise<T> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isTemporary(error)) throw error;
      const pauseMs = pauseAfter(error, failures);
      if (!mayRepeat(failures, pauseMs)) throw error;
      await sleep(pauseMs, signal);
    }
  }
}
