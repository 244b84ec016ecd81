/** A reply did not come in time. */
export class DeadlineExceeded extends Error {
  override name = 'DeadlineExceeded';
}

/**
 * Waits for `reply`, at most `ms` milliseconds.
 *
 * The timer grants one more turn of the event loop, in which sockets are read: a reply that came while this process
 * was busy counts as in time. (The commandTimeout of ioredis does not, and would take a busy process for a dead Redis.)
 *
 * @throws DeadlineExceeded when the time is over; else what `reply` was rejected with.
 */
export function withDeadline<T>(reply: Promise<T>, ms: number): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const timer = setTimeout(() => {
    setImmediate(() => reject(new DeadlineExceeded(`no answer within ${ms} ms`)));
  }, ms);
  void reply.then(resolve, reject).finally(() => clearTimeout(timer));
  return promise;
}
