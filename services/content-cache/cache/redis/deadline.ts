/** Redis did not reply in time. */
export class DeadlineExceeded extends Error {
  override name = 'DeadlineExceeded';
}

/**
 * Waits for `reply`, at most `ms` milliseconds.
 *
 * After the timer, sockets are read once more: a reply that arrived while this process was busy counts as in time.
 * (The commandTimeout of ioredis has no such grace and would mistake a busy process for a dead Redis.)
 *
 * @throws DeadlineExceeded after `ms`; otherwise the rejection of `reply`
 */
export function withDeadline<T>(reply: Promise<T>, ms: number): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const timer = setTimeout(() => {
    setImmediate(() => reject(new DeadlineExceeded(`no answer within ${ms} ms`)));
  }, ms);
  void reply.then(resolve, reject).finally(() => clearTimeout(timer));
  return promise;
}
