import { PlatformError } from './errors.ts';

/** Settles like `promise`, or rejects with the signal's reason as soon as the signal fires. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  let abort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort!);
  }
}

/** Timers of more than 24 days, also Infinity, would fire at once. */
const dayMs = 86_400_000;

/** Waits, at most a day. Rejects with the signal's reason as soon as the signal fires. */
export async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    await orAborted(new Promise<void>((done) => (timer = setTimeout(done, Math.min(ms, dayMs)))), signal);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Calls `work` with a signal that fires with the caller's signal, and after `limitMs`.
 * @throws PlatformError `timeout` after `limitMs`, and the reason of the caller's signal
 */
export async function withLimit<T>(
  limitMs: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  // Not AbortSignal.any: a signal that lives as long as the app would keep a reference to each request.
  const either = new AbortController();
  const abort = (): void => either.abort(signal?.reason);
  const message = `No complete reply within ${limitMs} ms.`;
  const stop = (): void => either.abort(new PlatformError({ code: 'timeout', message }));
  // A longer timer, also Infinity, would fire at once.
  const timer = setTimeout(stop, Math.min(limitMs, 2 ** 31 - 1));
  signal?.addEventListener('abort', abort);
  try {
    return await orAborted(work(either.signal), either.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
