import { expect, test } from '@jest/globals';
import { formatBytes, formatRatio, formatSeconds } from './format.ts';

test.each([
  [formatSeconds(0), '0.0 ms'],
  [formatSeconds(0.00421), '4.2 ms'],
  [formatSeconds(0.4994), '499 ms'],
  [formatSeconds(0.9999), '1.0 s'],
  [formatSeconds(12.3), '12 s'],
  [formatBytes(0), '0 B'],
  [formatBytes(1_234_567), '1.2 MB'],
  [formatBytes(99_700_000), '100 MB'],
  [formatRatio(1), '100 %'],
  [formatRatio(0.99999), '99.9 %'],
  [formatRatio(0), '0 %'],
  [formatRatio(0.80012), '80.0 %'],
])('%s', (text, expected) => expect(text).toBe(expected));
