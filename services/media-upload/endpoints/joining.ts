interface UnderWay<T> {
  result: Promise<T>;
  signal: AbortSignal;
}

export interface Joined<T> {
  value: T;
  /** Whether another one's work made it. */
  joined: boolean;
}

export type Join<T> = (key: string, signal: AbortSignal, work: () => Promise<T>) => Promise<Joined<T>>;

/**
 * Does the work of one key once at a time: who comes meanwhile waits for it and has its result, or throws what it threw.
 * When the work failed as its `signal` was aborted, the next in line does it.
 */
export function createJoining<T>(): Join<T> {
  const underWay = new Map<string, UnderWay<T>>();

  return async (key, signal, work) => {
    for (let other = underWay.get(key); other; other = underWay.get(key)) {
      try {
        return { value: await other.result, joined: true };
      } catch (error) {
        if (!other.signal.aborted) throw error;
      }
    }
    const result = work().finally(() => underWay.delete(key));
    underWay.set(key, { result, signal });
    return { value: await result, joined: false };
  };
}
