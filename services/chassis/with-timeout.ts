/**
 * Resolves with the result of `work`, or with `fallback` after `limitMs`; rejects if `work` rejects before. The work
 * itself is not stopped.
 */
export async function withTimeout<T, F = undefined>(
  work: Promise<T>,
  limitMs: number,
  fallback = undefined as F,
): Promise<T | F> {
  const { promise, resolve } = Promise.withResolvers<F>();
  const timer = setTimeout(resolve, limitMs, fallback).unref();
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}
