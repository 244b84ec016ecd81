import { afterEach } from '@jest/globals';

/** Returns a list of functions for the tests of a file. After each test they are called, the newest first. */
export function calledAfterEach(): (() => unknown)[] {
  const closers: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close();
  });
  return closers;
}
