import { expect, test } from '@jest/globals';
import { compose } from '../../../deploy/testing/compose.ts';
import { poolSizeFor } from './pool.ts';

const MiB = 2 ** 20;
/** Node's value for a machine without a limit: almost 2^64. */
const unlimited = 18_446_744_073_709_552_000;

test.each([unlimited, 0])('starts a worker process per core without a memory limit (%d)', (memory) => {
  expect(poolSizeFor(1, memory).size).toBe(1);
  expect(poolSizeFor(16, memory)).toEqual({ size: 16, maxBytes: (260 + 16 * 190) * MiB });
});

test('starts as many worker processes as the memory limit allows, and at least one', () => {
  expect(poolSizeFor(16, 1_100 * MiB).size).toBe(4);
  expect(poolSizeFor(16, 256 * MiB).size).toBe(1);
});

test('the Compose container has the memory for two worker processes, on a machine with any number of cores', () => {
  const limit = parseInt(compose.services['media-upload']!.mem_limit!, 10) * MiB;
  for (const cores of [2, 4, 64]) {
    const { size, maxBytes } = poolSizeFor(cores, limit);
    expect([cores, size]).toEqual([cores, 2]);
    expect(maxBytes).toBeLessThan(limit);
  }
});
