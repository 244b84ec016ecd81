import { afterAll, beforeAll } from '@jest/globals';

/**
 * Starts something before the tests of a file or block, and ends it afterwards. Only tests and hooks may use the result.
 */
export function useStarted<T extends object>(start: () => Promise<T>, end: (started: T) => unknown): T {
  const started = {} as T;
  beforeAll(async () => void Object.assign(started, await start()));
  afterAll(async () => void (await end(started)));
  return started;
}
