/** Converts failures to waits; times in ms. */
export interface Backoff {
  /** Failures below the limit expire this long after the first one; failures above it, this long after the wait. */
  windowMs: number;
  /** The wait at the limit; each further failure doubles it. */
  shortestMs: number;
  longestMs: number;
}

/** The key that failures are counted for, and the number of failures at which waits begin. */
interface CountedKey {
  key: string;
  limit: number;
  /** The longest wait and the window in ms, if they differ from those of the backoff. */
  longestMs?: number;
  windowMs?: number | undefined;
}

/** The failures of one key; times in ms. */
export interface FailureCount {
  count: number;
  firstAt: number;
  /** No attempt is allowed before this time; 0 while below the limit. */
  blockedUntil: number;
  expiresAt: number;
}

type KeyState = FailureCount | undefined;

/** Replaces the states of `keys` atomically, or writes nothing without `states`. `change` may run several times. */
export type UpdateFailures = <T>(
  keys: readonly string[],
  change: (states: readonly KeyState[], now: number) => { states?: readonly KeyState[]; result: T },
) => Promise<T>;

function addFailure(state: KeyState, limit: number, now: number, backoff: Backoff): FailureCount {
  const { count, firstAt } = state ?? { count: 0, firstAt: now };
  const over = count + 1 - limit;
  const blockedUntil = over < 0 ? 0 : now + Math.min(backoff.shortestMs * 2 ** over, backoff.longestMs);
  const expiresAt = (over < 0 ? firstAt : blockedUntil) + backoff.windowMs;
  return { count: count + 1, firstAt, blockedUntil, expiresAt };
}

/** Reverts the step from `before` to `added`, even if other failures were counted later. */
function removeFailure(state: KeyState, before: KeyState, added: KeyState): KeyState {
  // The failures were reset or have expired, so the state counts other failures.
  if (!state || state.firstAt !== added?.firstAt) return state;
  if (state.count === 1) return undefined;
  // If a later failure began a longer wait, that wait stays.
  const kept = state.blockedUntil === added.blockedUntil ? (before ?? state) : state;
  return { ...kept, count: state.count - 1 };
}

/** Counts a failure for every key, or none if any key has to wait. Throws the errors of `update`. */
export async function reserveAttempt(
  update: UpdateFailures,
  counted: readonly CountedKey[],
  backoff: Backoff,
) {
  const keys = counted.map(({ key }) => key);
  const { waitMs, before, added } = await update(keys, (before, now) => {
    const waitMs = Math.max(0, ...before.map((state) => (state?.blockedUntil ?? 0) - now));
    if (waitMs > 0) return { result: { waitMs, before, added: [] } };
    const added = counted.map(({ limit, longestMs = Infinity, windowMs = backoff.windowMs }, index) => {
      const own = { ...backoff, windowMs, longestMs: Math.min(longestMs, backoff.longestMs) };
      return addFailure(before[index], limit, now, own);
    });
    return { states: added, result: { waitMs, before, added } };
  });
  return {
    /** Time until the next attempt, in ms; 0: this attempt was counted. */
    waitMs,
    /** Removes the counted failure. */
    undo: () =>
      update(keys, (states) => ({
        states: states.map((state, index) => removeFailure(state, before[index], added[index])),
        result: undefined,
      })),
  };
}

export function resetFailures(update: UpdateFailures, keys: readonly string[]): Promise<void> {
  return update(keys, () => ({ states: keys.map(() => undefined), result: undefined }));
}

/** Above this number of keys the least recently written ones are deleted. */
const maxKeys = 50_000;

/** Counts failures in the memory of this process. `now` in ms. */
export function createMemoryFailures(now: () => number = Date.now): UpdateFailures {
  const held = new Map<string, FailureCount>();

  function read(key: string): KeyState {
    const state = held.get(key);
    return state && now() < state.expiresAt ? state : undefined;
  }

  function write(key: string, state: KeyState): void {
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
