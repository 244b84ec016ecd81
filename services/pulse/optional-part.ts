import { withTimeout } from '@content-platform/chassis';

const limitMs = 2_000;

/** Returns null if `ask` fails or takes longer than 2 s; after that at once, while `ask` is tried for later pages. */
export function optionalPart<Args extends unknown[], T>(ask: (...args: Args) => Promise<T>) {
  let failing = false;
  return async (...args: Args): Promise<T | null> => {
    const answer = ask(...args).catch(() => null);
    const inTime = withTimeout(answer, limitMs, null).then((value) => {
      failing = value === null;
      return value;
    });
    return failing ? null : inTime;
  };
}
