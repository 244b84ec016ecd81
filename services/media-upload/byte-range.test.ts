import { expect, test } from '@jest/globals';
import { parseRange } from './endpoints/read-variant.ts';

test.each([
  ['bytes=0-0', { start: 0, end: 0 }],
  ['bytes=0-99', { start: 0, end: 99 }],
  ['bytes=90-200', { start: 90, end: 99 }],
  ['bytes=10-', { start: 10, end: 99 }],
  ['bytes=-10', { start: 90, end: 99 }],
  ['bytes=-1000', { start: 0, end: 99 }],
  ['BYTES= 1-2', { start: 1, end: 2 }],
  ['bytes=100-', 'unsatisfiable'],
  ['bytes=100-200', 'unsatisfiable'],
  ['bytes=-0', 'unsatisfiable'],
  ['bytes=5-4', undefined],
  ['bytes=-', undefined],
  ['bytes=0-1,3-4', undefined],
  ['bytes=a-b', undefined],
  ['bytes=0 0-1', undefined],
  ['bytes=1e1-20', undefined],
  ['bytes=0x1-2', undefined],
  [`bytes=0-${'9'.repeat(20)}`, { start: 0, end: 99 }],
  [`bytes=-${'9'.repeat(400)}`, { start: 0, end: 99 }],
  [`bytes=${'9'.repeat(20)}-`, 'unsatisfiable'],
  ['items=0-1', undefined],
  ['', undefined],
  [undefined, undefined],
])('parses %s for a file of 100 bytes', (header, range) => {
  expect(parseRange(header, 100)).toEqual(range);
});
