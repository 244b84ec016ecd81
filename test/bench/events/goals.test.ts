import { expect, test } from '@jest/globals';
import type { Delay } from './delay.ts';
import { judge, type Measured } from './goals.ts';

const cpu = { gateway: 1, contentCache: 1, redis: 1, postgres: 1, kafka: 1, load: 1 };
const delay = (p99: number, errors: string[] = []): Delay => ({
  perSecond: 500,
  times: { count: 10, p50: 1, p99, max: p99 },
  errors,
  cpu,
});
const good: Measured = {
  throughput: { events: 200, perSecond: 20_000, committedPerSecond: 19_000, cpu },
  events: delay(249.9),
  calls: delay(9.9),
  bare: delay(2),
};
const heldOf = (measured: Partial<Measured>) => judge({ ...good, ...measured }).map(({ isHeld }) => isHeld);

test('what is within the goals is held, and says what was seen', () => {
  expect(heldOf({})).toEqual([true, true, true]);
  expect(judge(good).map(({ text }) => text)).toEqual([
    'CACHE_UNMANAGED_KEYS=none: 200 events that waited: 20000 cleared a second, the goal is 20000',
    'CACHE_UNMANAGED_KEYS=none: from an event to its record gone, at 500 a second: p99 249.9 ms, the goal is under 250',
    'CACHE_UNMANAGED_KEYS=none: a call of clear-model through the gateway (of a bare Node server: p99 2.0 ms), at 500 a second: p99 9.9 ms, the goal is under 10',
  ]);
});

test('each goal that is missed is told, and an error misses one', () => {
  expect(heldOf({ throughput: { ...good.throughput, perSecond: 19_999 } })[0]).toBe(false);
  expect(heldOf({ events: delay(250) })[1]).toBe(false);
  expect(heldOf({ calls: delay(10) })[2]).toBe(false);
  expect(heldOf({ calls: delay(1, ['503: no']) })[2]).toBe(false);
  expect(judge({ ...good, calls: delay(1, ['503: no']) })[2]!.text).toContain('errors: 503: no');
});
