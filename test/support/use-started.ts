import { afterAll, beforeAll } from '@jest/globals';

type Started = Partial<Record<'stop' | 'close' | 'drop', () => unknown>>;

/**
 * Starts something before the tests of a file or block, and ends it afterwards by its `stop`, `close` or `drop`. Only
 * tests and hooks may use the result. `limitMs`: time limit of the start.
 */
export function useStarted<T extends Started>(start: () => Promise<T>, limitMs?: number): T {
  const started = {} as T;
  beforeAll(async () => void Object.assign(started, await start()), limitMs);
  afterAll(async () => void (await (started.stop ?? started.close ?? started.drop)?.()));
  return started;
}
