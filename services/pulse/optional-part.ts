import { withTimeout } from '@content-platform/chassis';

const limitMs = 2_000;

/**
 * Wraps a request for a part of the page: the result is null if `ask` fails or takes longer than 2 s. After a failure
 * pages get null at once. Meanwhile one request checks for later pages whether `ask` works again.
 */
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
