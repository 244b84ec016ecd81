import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { childrenFor } from './children.ts';

const MiB = 2 ** 20;
/** What Node says of a machine without a limit: 2^64, nearly. */
const unlimited = 18_446_744_073_709_552_000;

test.each([unlimited, 0])('as many as there are cores, where memory has no limit (%d)', (memory) => {
  expect(childrenFor(1, memory).size).toBe(1);
  expect(childrenFor(16, memory)).toEqual({ size: 16, maxBytes: (260 + 16 * 190) * MiB });
});

test('with a limit no more than there is memory for, and one in any case', () => {
  expect(childrenFor(16, 1_100 * MiB).size).toBe(4);
  expect(childrenFor(16, 256 * MiB).size).toBe(1);
});

test('the container of compose is given what two need, on a machine with any number of cores', () => {
  const text = readFileSync(new URL('../../../docker-compose.yml', import.meta.url), 'utf8');
  const { services } = parse(text, { merge: true }) as { services: Record<string, { mem_limit: string }> };
  const limit = parseInt(services['media-upload']!.mem_limit, 10) * MiB;
  for (const cores of [2, 4, 64]) {
    const { size, maxBytes } = childrenFor(cores, limit);
    expect([cores, size]).toEqual([cores, 2]);
    expect(maxBytes).toBeLessThan(limit);
  }
});
