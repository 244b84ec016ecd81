/** Does `work` when a slot is free: first come, first served. */
export type InSlot = <T>(work: () => Promise<T>) => Promise<T>;

/** At most `count` at a time. */
export function createSlots(count: number): InSlot {
  const waiting: (() => void)[] = [];
  let free = count;
  return async (work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}
