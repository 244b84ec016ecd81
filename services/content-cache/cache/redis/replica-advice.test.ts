import { expect, test } from '@jest/globals';
import { replicaAdvice } from './replica-advice.ts';

/** Returns the number to set, and the two numbers that are set, for a shard beside one without replicas. */
function advice(replicas: number, minToWrite: number | undefined, atLeast: number) {
  const text = replicaAdvice(
    [
      { replicas: 0, minToWrite: 0 },
      { replicas, minToWrite },
    ],
    atLeast,
  );
  return /to (\d) \(they are (.*)\)/.exec(text ?? '')?.slice(1);
}

test.each([
  // replicas, min-replicas-to-write, CACHE_MIN_REPLICAS, advice
  [0, 0, 0, undefined],
  [1, 0, 0, ['1', '0 and 0']],
  [1, 1, 0, ['1', '1 and 0']],
  [1, 0, 1, ['1', '0 and 1']],
  [1, 1, 1, undefined],
  [2, 1, 1, undefined],
  [2, 2, 1, ['2', '2 and 1']],
  [3, 1, 1, ['2', '1 and 1']],
  [4, 2, 2, undefined],
  [1, undefined, 0, ['1', 'unknown and 0']],
  [1, undefined, 1, undefined],
])('%d replicas, Redis needs %s, CACHE_MIN_REPLICAS %d: %j', (replicas, minToWrite, atLeast, expected) => {
  expect(advice(replicas, minToWrite, atLeast)).toEqual(expected);
});
