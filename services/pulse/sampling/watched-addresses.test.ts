import { expect, test } from '@jest/globals';
import type { Scrape } from './scrape.ts';
import { watchAddresses } from './watched-process.ts';

const address = 'http://10.0.0.1:9080';
const minutes = (n: number) => n * 60_000;

/** The scrape of a process that started at `startedAt` (ms), with this count. */
function tell(startedAt: number, missed: number): Scrape {
  return new Map([
    ['process_start_time_seconds', [{ labels: {}, value: startedAt / 1_000 }]],
    ['invalidation_missed_total', [{ labels: { model: 'webform' }, value: missed }]],
  ]);
}

/** Scrapes the address at each of these times and returns the increase at the last one. */
function newAfter(startedAt: number, looks: [at: number, missed: number | undefined][]) {
  const watch = watchAddresses();
  // Earlier than all other times.
  watch(['http://10.0.0.2:9080'], 0);
  const counts = looks.map(([at, missed]) => {
    const [process] = watch(missed === undefined ? [] : [address], at);
    return process?.take(at, tell(startedAt, missed!));
  });
  return counts.at(-1)?.get('missed|webform') ?? 0;
}

test.each<[string, number, [number, number | undefined][], number]>([
  ['of an old process that is first seen late', minutes(10), [[minutes(20), 50]], 0],
  ['of a young process', minutes(18), [[minutes(20), 50]], 50],
  [
    'of an old process whose address was missing briefly',
    minutes(10),
    [
      [minutes(20), 50],
      [minutes(21), undefined],
      [minutes(22), 53],
    ],
    3,
  ],
  [
    'of a young process whose address was missing briefly',
    minutes(18),
    [
      [minutes(19), 50],
      [minutes(20), undefined],
      [minutes(21), 53],
    ],
    3,
  ],
  [
    'of a process whose address was missing for longer than the window',
    minutes(10),
    [
      [minutes(20), 50],
      [minutes(21), undefined],
      [minutes(26), undefined],
      [minutes(27), 53],
    ],
    0,
  ],
])('counts the increase %s', (_, startedAt, looks, expected) =>
  expect(newAfter(startedAt, looks)).toBe(expected),
);
