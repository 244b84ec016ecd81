interface Flight<T> {
  result: Promise<T>;
  signal: AbortSignal;
}

/**
 * Returns a function that does the work of one key once at a time. A call for a key whose work is under way waits for
 * that result or throws its error; if that work failed because its own `signal` was aborted, the next call does the work.
 * `joined` says whether another call did the work.
 */
export function singleFlight<T>() {
  const flights = new Map<string, Flight<T>>();

  return async (
    key: string,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<{ value: T; joined: boolean }> => {
    for (let flight = flights.get(key); flight; flight = flights.get(key)) {
      try {
        return { value: await flight.result, joined: true };
      } catch (error) {
        if (!flight.signal.aborted) throw error;
      }
    }
    const result = work().finally(() => flights.delete(key));
    flights.set(key, { result, signal });
    return { value: await result, joined: false };
  };
}
