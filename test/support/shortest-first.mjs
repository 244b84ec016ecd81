import TestSequencer from '@jest/test-sequencer';

/** Runs the shortest test files first, so that the first result comes within seconds. */
export default class ShortestFirst extends TestSequencer {
  sort(tests) {
    // sort() returns a new array, longest first.
    // oxlint-disable-next-line unicorn/no-array-sort
    return super.sort(tests).toReversed();
  }
}
