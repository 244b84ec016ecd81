import { createSemaphore, type Release } from '@content-platform/chassis';

/**
 * Allows `max` concurrent uploads in total and `maxPerUser` for each user, so that one user cannot block the others.
 * The returned function gives an upload of the user a slot; undefined: none is free.
 */
export function perUserLimit(max: number, maxPerUser: number): (userId: number) => Release | undefined {
  const all = createSemaphore(max);
  const held = new Map<number, number>();

  return (userId) => {
    const own = held.get(userId) ?? 0;
    const release = own < maxPerUser ? all.tryAcquire() : undefined;
    if (!release) return undefined;
    held.set(userId, own + 1);
    return () => {
      release();
      const left = held.get(userId)! - 1;
      if (left > 0) held.set(userId, left);
      else held.delete(userId);
    };
  };
}
