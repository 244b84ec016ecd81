import { expect, test } from '@jest/globals';
import { separation } from './roc.ts';

test.each([
  [[1, 2], [3, 4], 1],
  [[3, 4], [1, 2], 1],
  [[1, 1], [1, 1], 0.5],
  [[1, 3], [2, 4], 0.75],
  [[2, 3], [1, 2], 0.875],
])('%j and %j: %d', (one, other, area) => {
  expect(separation(one, other).area).toBe(area);
});

test('values that only one kind has are found by their part', () => {
  const plain = Array.from({ length: 1_000 }, () => 400);
  const late = plain.map((value, index) => (index < 200 ? value + 50 : value));
  const { area, margin } = separation(plain, late);
  expect(area).toBeCloseTo(0.6);
  // The known standard error of a proportion, halved.
  expect(margin).toBeCloseTo((1.96 * Math.sqrt((0.2 * 0.8) / 1_000)) / 2, 3);
});
