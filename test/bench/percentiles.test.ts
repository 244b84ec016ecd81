import { expect, test } from '@jest/globals';
import { median, percentile, timesOf } from './percentiles.ts';

test('a percentile is the value that so great a part does not exceed, in whatever order they came', () => {
  const values = Array.from({ length: 100 }, (_, index) => 100 - index);
  expect([0, 0.5, 0.99, 1].map((part) => percentile(values, part))).toEqual([1, 50, 99, 100]);
  expect(percentile([7], 0.99)).toBe(7);
  expect(percentile([], 0.5)).toBeNaN();
  expect(timesOf([3, 1, 2])).toEqual({ count: 3, p50: 2, p99: 3, max: 3 });
});

test('the median is in the middle, also of an even number', () => {
  expect([median([3, 1, 2]), median([4, 1, 2, 3]), median([])]).toEqual([2, 2.5, Number.NaN]);
});
