/** What failures are counted for, and how many may come before the waits begin. */
export interface Subject {
  key: string;
  limit: number;
}

/** In ms. */
export interface Backoff {
  /** So many failures count as come in this time from the first one. */
  window: number;
  /** From the limit on, each failure is followed by a wait twice as long as the one before, from this one... */
  shortest: number;
  /** ...to this one. */
  longest: number;
}

export interface Reservation {
  /** Until the next try; 0: this one was counted. */
  waitMs: number;
  /** It was no failure: takes back what was counted, and the wait that it began. */
  giveBack(): Promise<void>;
}

/**
 * Counts failures before they are known to be ones, so that tries that come together cannot all pass the limit. At the
 * limit waits begin; nothing is counted while one has to wait. A count is forgotten when its window is over or, from
 * the limit on, when nothing has failed for another window after the wait.
 */
export interface FailureCounts {
  /** Counts one for every subject, or none when one of them has to wait. */
  reserve(subjects: readonly Subject[]): Promise<Reservation>;
  forget(keys: readonly string[]): Promise<void>;
}

interface State {
  failures: number;
  /** when the first of them was counted */
  first: number;
  /** no further try before this time; 0: at once */
  blockedUntil: number;
}

/** Those least recently counted for go when there are more. */
const maxKeys = 50_000;

/** Counts in this process. `now` in ms. */
export function createMemoryCounts(backoff: Backoff, now: () => number = Date.now): FailureCounts {
  const { window, shortest, longest } = backoff;
  const states = new Map<string, State>();

  function stateOf({ key, limit }: Subject): State {
    const fresh = { failures: 0, first: now(), blockedUntil: 0 };
    const state = states.get(key);
    if (!state) return fresh;
    const last = state.failures < limit ? state.first : state.blockedUntil;
    return now() < last + window ? state : fresh;
  }

  /** Returns what takes it back. */
  function count(subject: Subject): () => void {
    const { key, limit } = subject;
    const { failures, first, blockedUntil: before } = stateOf(subject);
    const over = failures + 1 - limit;
    const blockedUntil = over < 0 ? 0 : now() + Math.min(shortest * 2 ** over, longest);
    states.delete(key);
    states.set(key, { failures: failures + 1, first, blockedUntil });
    if (states.size > maxKeys) states.delete(states.keys().next().value!);
    return () => {
      const state = states.get(key);
      if (!state) return;
      state.failures -= 1;
      // Unless another failure has begun a later one.
      if (state.blockedUntil === blockedUntil) state.blockedUntil = before;
      if (state.failures <= 0) states.delete(key);
    };
  }

  return {
    async reserve(subjects) {
      const waitMs = Math.max(0, ...subjects.map((subject) => stateOf(subject).blockedUntil - now()));
      const takeBack = waitMs > 0 ? [] : subjects.map(count);
      return { waitMs, giveBack: async () => takeBack.forEach((take) => take()) };
    },
    async forget(keys) {
      for (const key of keys) states.delete(key);
    },
  };
}
