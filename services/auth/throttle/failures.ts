/** How failures turn into waits, in ms. */
export interface Backoff {
  /** Failures below the limit are forgotten this long after the first of them, others this long after their wait. */
  windowMs: number;
  /** The wait at the limit. Each further failure doubles it. */
  shortestMs: number;
  longestMs: number;
}

/** What failures are counted for, and how many of them begin the waits. */
export interface Subject {
  key: string;
  limit: number;
}

/** The failures of one key. Times in ms. */
export interface Failures {
  count: number;
  firstAt: number;
  /** No attempt is allowed before this time; 0 below the limit. */
  blockedUntil: number;
  expiresAt: number;
}

export type State = Failures | undefined;

/**
 * Replaces the states of `keys` in one step. `change` gets those that have not expired, and the time in ms. It may run
 * several times. Without `states` in its reply nothing is written.
 */
export type UpdateFailures = <T>(
  keys: readonly string[],
  change: (states: readonly State[], now: number) => { states?: readonly State[]; result: T },
) => Promise<T>;

function addFailure(state: State, limit: number, now: number, backoff: Backoff): Failures {
  const { count, firstAt } = state ?? { count: 0, firstAt: now };
  const over = count + 1 - limit;
  const blockedUntil = over < 0 ? 0 : now + Math.min(backoff.shortestMs * 2 ** over, backoff.longestMs);
  const expiresAt = (over < 0 ? firstAt : blockedUntil) + backoff.windowMs;
  return { count: count + 1, firstAt, blockedUntil, expiresAt };
}

/** Undoes the step from `before` to `added`, also when other failures were counted since. */
function removeFailure(state: State, before: State, added: State): State {
  // The failures were reset or have expired since: these are others.
  if (!state || state.firstAt !== added?.firstAt) return state;
  if (state.count === 1) return undefined;
  // A later failure has begun a later wait, which stays.
  const kept = state.blockedUntil === added.blockedUntil ? (before ?? state) : state;
  return { ...kept, count: state.count - 1 };
}

/** Counts a failure for every subject, or nothing if any of them has to wait. Throws what `update` throws. */
export async function reserve(update: UpdateFailures, subjects: readonly Subject[], backoff: Backoff) {
  const keys = subjects.map(({ key }) => key);
  const { waitMs, before, added } = await update(keys, (before, now) => {
    const waitMs = Math.max(0, ...before.map((state) => (state?.blockedUntil ?? 0) - now));
    if (waitMs > 0) return { result: { waitMs, before, added: [] } };
    const added = subjects.map(({ limit }, index) => addFailure(before[index], limit, now, backoff));
    return { states: added, result: { waitMs, before, added } };
  });
  return {
    /** Time until the next attempt, in ms; 0: this attempt was counted. */
    waitMs,
    /** Takes back what was counted. */
    undo: () =>
      update(keys, (states) => ({
        states: states.map((state, index) => removeFailure(state, before[index], added[index])),
        result: undefined,
      })),
  };
}

/** Deletes the failures of `keys`. Throws what `update` throws. */
export function reset(update: UpdateFailures, keys: readonly string[]): Promise<void> {
  return update(keys, () => ({ states: keys.map(() => undefined), result: undefined }));
}

/** The memory drops the least recently written keys above this number. */
const maxKeys = 50_000;

/** Failures in the memory of this process. `now` in ms. */
export function createMemoryFailures(now: () => number = Date.now): UpdateFailures {
  const held = new Map<string, Failures>();

  function read(key: string): State {
    const state = held.get(key);
    return state && now() < state.expiresAt ? state : undefined;
  }

  function write(key: string, state: State): void {
    held.delete(key);
    if (state) held.set(key, state);
    if (held.size > maxKeys) held.delete(held.keys().next().value!);
  }

  return async (keys, change) => {
    const { states, result } = change(keys.map(read), now());
    states?.forEach((state, index) => write(keys[index]!, state));
    return result;
  };
}
