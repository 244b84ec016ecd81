import { withTimeout } from '@content-platform/chassis';

const limitMs = 2_000;

/** Wraps `ask`: null if it fails or takes longer than 2 s, and then at once until it succeeds in the background. */
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
