import { type Breaker, withTimeout } from '@content-platform/chassis';

const limitMs = 2_000;

/** Wraps `read`: null if it fails (`breaker` logs) or takes over 2 s, then null at once until a later call succeeds. */
export function optionalPart<A extends unknown[], T>(breaker: Breaker, read: (...args: A) => Promise<T>) {
  let failing = false;
  return async (...args: A): Promise<T | null> => {
    const reading = read(...args);
    reading.then(
      () => breaker.report(true),
      (error: unknown) => breaker.report(false, error),
    );
    const part = reading.catch(() => null);
    const inTime = withTimeout(part, limitMs, null).then((value) => {
      failing = value === null;
      return value;
    });
    return failing ? null : inTime;
  };
}
