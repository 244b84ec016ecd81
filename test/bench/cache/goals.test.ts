import { expect, test } from '@jest/globals';
import type { Clears } from './clears.ts';
import { judge, type Measured } from './goals.ts';

const clears = (keys: number, redisCpu: number, ms: number): Clears => ({
  keys,
  times: { count: 1, p50: ms, p99: ms, max: ms },
  redisCpu,
  ping: { p99: 1, max: 1 },
});

const good: Measured = {
  race: { clears: 100, reads: 1_000, stale: 0 },
  storms: [
    { reads: 1, ms: 90 },
    { reads: 1, ms: 90 },
  ],
  none: [clears(10, 100, 2), clears(100, 110, 2), clears(1_000, 130, 2)],
  sweep: [clears(10, 100, 2), clears(100, 1_000, 20), clears(1_000, 10_000, 999)],
  together: { keys: 1_000, ms: 900, scans: 2 },
};
const heldOf = (measured: Partial<Measured>) => judge({ ...good, ...measured }).map(({ isHeld }) => isHeld);

test('what is within the goals is held, and says what was seen', () => {
  expect(heldOf({})).toEqual([true, true, true, true, true]);
  expect(judge(good).map(({ text }) => text)).toEqual([
    'stale reads in the race: 0 of 1000, beside 100 clears',
    'reads of the database in a storm of one key: 1, the goal is 1',
    "CACHE_UNMANAGED_KEYS=none: Redis's CPU for a clear among 1000 keys: 1.30 × that among 10; the goal is 1.3 ×",
    'CACHE_UNMANAGED_KEYS=sweep: a sweep of 1000 keys: 999 ms (median), 999 at most, 450 each where a hundred clears share them; the goal is under 1000',
    'CACHE_UNMANAGED_KEYS=sweep: a hundred clears at once go through 1000 keys 2.00 times, the goal is 2',
  ]);
});

test('each goal that is missed is told', () => {
  expect(heldOf({ race: { clears: 100, reads: 1_000, stale: 1 } })[0]).toBe(false);
  expect(heldOf({ storms: [...good.storms, { reads: 2, ms: 90 }] })[1]).toBe(false);
  expect(heldOf({ none: [clears(10, 100, 2), clears(1_000, 131, 2)] })[2]).toBe(false);
  expect(heldOf({ sweep: [clears(1_000, 10_000, 1_000)] })[3]).toBe(false);
  expect(heldOf({ together: { keys: 1_000, ms: 2_000, scans: 2 } })[3]).toBe(false);
  expect(heldOf({ together: { keys: 1_000, ms: 900, scans: 3 } })[4]).toBe(false);
});

test('where nothing was read or cleared, or no storm came, nothing is held', () => {
  expect(heldOf({ race: { clears: 100, reads: 0, stale: 0 } })[0]).toBe(false);
  expect(heldOf({ race: { clears: 0, reads: 1_000, stale: 0 } })[0]).toBe(false);
  expect(heldOf({ storms: [] })[1]).toBe(false);
});
