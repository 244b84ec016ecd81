interface Flight<T> {
  result: Promise<T>;
  signal: AbortSignal;
}

/**
 * Returns a function that runs the work of a key once at a time. A call during that work waits for its result or throws its
 * error. If the work failed because its own `signal` was aborted, the next call runs the work. `joined` is true if another
 * call ran the work.
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
