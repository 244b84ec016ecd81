import { type Breaker, withTimeout } from '@content-platform/chassis';

const late = new Error('no reply within 2 s');

/** Wraps `read`: null if it fails or takes over 2 s (`breaker` logs), then null at once until a later call succeeds. */
export function optionalPart<A extends unknown[], T>(breaker: Breaker, read: (...args: A) => Promise<T>) {
  let failing = false;
  return async (...args: A): Promise<T | null> => {
    const settled = (value: T | null, error?: unknown) => {
      failing = value === null;
      breaker.report(error === undefined, error);
      return value;
    };
    const inTime = withTimeout(read(...args), 2_000, late).then(
      (value) => (value instanceof Error ? settled(null, value) : settled(value)),
      (error: unknown) => settled(null, error),
    );
    return failing ? null : inTime;
  };
}
