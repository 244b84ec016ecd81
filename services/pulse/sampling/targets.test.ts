import { expect, test } from '@jest/globals';
import { countedSince, type Gauges } from './sampler.ts';
import { countWindowMs, measure } from './targets.ts';

const at = 1_000_000;
const well: Gauges = {
  gateway: true,
  contentCache: true,
  queue: 0,
  queueMeasuredAt: at,
  failedJobs: 0,
  memoryBytes: 10,
  memoryLimitBytes: 100,
};
/** Returns the value and the state of one target. */
function stand(index: number, counted: Record<string, number>, gauges: Partial<Gauges> = {}) {
  const { value, ok } = measure(new Map(Object.entries(counted)), { ...well, ...gauges }, at)[index]!;
  return [value, ok];
}

test.each<[string, Record<string, number>, Partial<Gauges>, unknown]>([
  ['fast', { 'request|GET /api/me|0.1': 100 }, {}, [expect.closeTo(0.0975), true]],
  ['slow', { 'request|GET /api/me|0.1': 90, 'request|GET /api/me|1': 10 }, {}, [expect.closeTo(0.75), false]],
  ['fewer than 20', { 'request|GET /api/me|1': 19 }, {}, [null, true]],
  [
    'intentionally slow',
    {
      'request|POST /api/login|1': 50,
      'request|POST /pulse/sign-in|1': 50,
      'request|POST /api/upload|10': 9,
    },
    {},
    [null, true],
  ],
  ['slower than the last bound', { 'request|GET /api/me|Infinity': 20 }, {}, [10, false]],
  ['no gateway', {}, { gateway: false }, [null, false]],
])('request duration: %s', (_, counted, gauges, expected) => {
  expect(stand(0, counted, gauges)).toEqual(expected);
});

test.each<[string, Partial<Gauges>, unknown]>([
  ['99', { queue: 99 }, [99, true]],
  ['100', { queue: 100 }, [100, false]],
  ['measured too long ago', { queueMeasuredAt: at - 60_001 }, [null, false]],
  ['no Kafka', { queueMeasuredAt: 0 }, [0, true]],
  ['no Kafka, with refused clears', { queueMeasuredAt: 0, queue: 100 }, [100, false]],
  ['not reported', { queue: undefined, queueMeasuredAt: undefined }, [null, false]],
])('queue: %s', (_, gauges, expected) => expect(stand(1, {}, gauges)).toEqual(expected));

test('counts the last five minutes, and no sample from before the clock was set back', () => {
  const one = { increases: new Map([['x', 1]]), gauges: well, values: new Map() };
  const samples = [300_000, 299_999, -1].map((before) => ({ ...one, at: at - before }));
  expect(countedSince(samples, at, countWindowMs).get('x')).toBe(1);
});

test('notes what the queue counts without Kafka', () => {
  const noteOf = (queueMeasuredAt: number) => measure(new Map(), { ...well, queueMeasuredAt }, at)[1]!.note;
  expect(noteOf(0)).toMatch(/^HTTP only/);
  expect(noteOf(at)).toBeUndefined();
});

test.each<[number | undefined, unknown]>([
  [0, [0, true]],
  [1, [1, false]],
  [undefined, [null, false]],
])('%s failed jobs', (failedJobs, expected) => expect(stand(2, {}, { failedJobs })).toEqual(expected));

test.each<[string, Record<string, number>, unknown]>([
  ['81 of 100', { 'read|webform|hit': 81, 'read|pathway|miss': 19 }, [0.81, true]],
  ['80 of 100', { 'read|webform|hit': 80, 'read|webform|bypass': 20 }, [0.8, false]],
  ['fewer than 100', { 'read|webform|miss': 99 }, [null, true]],
])('hit ratio: %s', (_, counted, expected) => expect(stand(3, counted)).toEqual(expected));

test('hit ratio: not reported', () => expect(stand(3, {}, { contentCache: false })).toEqual([null, false]));

test.each<[string, Partial<Gauges>, unknown]>([
  ['89 %', { memoryBytes: 89 }, [0.89, true]],
  ['90 %', { memoryBytes: 90 }, [0.9, false]],
  ['no limit', { memoryLimitBytes: 0 }, [10, true]],
  ['not reported', { memoryBytes: undefined }, [null, false]],
])('memory: %s', (_, gauges, expected) => expect(stand(4, {}, gauges)).toEqual(expected));
