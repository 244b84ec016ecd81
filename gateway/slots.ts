/** Gives a slot up; may be called more than once. */
export type Release = () => void;

export interface Slots {
  /** A slot; undefined when all are taken. */
  take(): Release | undefined;
  /** Resolves when a slot is ours, in the order of asking. Rejects with the reason when `signal` is aborted first. */
  wait(signal: AbortSignal): Promise<Release>;
}

/** At most `max` at a time. */
export function createSlots(max: number): Slots {
  let taken = 0;
  const waiting = new Set<(release: Release) => void>();

  function hold(): Release {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const [next] = waiting;
      // Handed on, not given back: nobody who comes later can get in between.
      if (next) next(hold());
      else taken -= 1;
    };
  }

  return {
    take() {
      if (taken >= max) return undefined;
      taken += 1;
      return hold();
    },
    wait(signal) {
      return new Promise((resolve, reject) => {
        const enter = (release: Release) => {
          waiting.delete(enter);
          signal.removeEventListener('abort', leave);
          resolve(release);
        };
        const leave = () => {
          waiting.delete(enter);
          reject(signal.reason as Error);
        };
        waiting.add(enter);
        signal.addEventListener('abort', leave, { once: true });
      });
    },
  };
}
