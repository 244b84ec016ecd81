import { createSlots, type Release } from '@content-platform/chassis';

export interface Places {
  /** A place for an upload of this user; undefined when all are taken, or the user has a full share. */
  take(userId: number): Release | undefined;
}

/** Room for `max` uploads at a time, `share` of them of one user: nobody keeps all the others out. */
export function createPlaces(max: number, share: number): Places {
  const all = createSlots(max);
  const held = new Map<number, number>();

  return {
    take(userId) {
      const own = held.get(userId) ?? 0;
      const release = own < share ? all.take() : undefined;
      if (!release) return undefined;
      held.set(userId, own + 1);
      return () => {
        release();
        const left = held.get(userId)! - 1;
        if (left > 0) held.set(userId, left);
        else held.delete(userId);
      };
    },
  };
}
