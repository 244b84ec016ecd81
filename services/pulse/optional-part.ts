import { withTimeout } from '@content-platform/chassis';

const limitMs = 2_000;

/** Wraps `read`: returns null if it fails or takes over 2 s, then null immediately until a background call succeeds. */
export function optionalPart<Args extends unknown[], T>(read: (...args: Args) => Promise<T>) {
  let failing = false;
  return async (...args: Args): Promise<T | null> => {
    const part = read(...args).catch(() => null);
    const inTime = withTimeout(part, limitMs, null).then((value) => {
      failing = value === null;
      return value;
    });
    return failing ? null : inTime;
  };
}
