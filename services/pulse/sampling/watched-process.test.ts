import { expect, test } from '@jest/globals';
import { createMetrics, observe } from '@content-platform/chassis';
import type { Family, Scrape } from './scrape.ts';
import type { Counts } from './counters.ts';
import { watchAddresses, watchProcess } from './watched-process.ts';

/** The scrape of a gateway that started at `startedAt` (s), with these counts. */
async function scrapeOf(startedAt: number, requests: number, missed: number): Promise<Scrape> {
  const { registry, requestDuration } = createMetrics('gateway');
  const labels = { service: 'gateway', method: 'GET', route: '/api/me' };
  for (let n = 0; n < requests; n += 1) observe(requestDuration, { ...labels, status: '200' }, 0.03);
  observe(requestDuration, { ...labels, status: '503' }, 0.03);
  const families = await registry.getMetricsAsJSON();
  const scrape = new Map(families.map(({ name, values }) => [name, values])) as unknown as Map<
    string,
    Family['values']
  >;
  scrape.set('process_start_time_seconds', [{ labels: {}, value: startedAt }]);
  scrape.set('invalidation_missed_total', [{ labels: { model: 'webform' }, value: missed }]);
  return scrape;
}
const second = (at: number) => at * 1_000;
const address = 'http://127.0.0.1:9080';

test('ignores counts from before the first sample and returns later increases', async () => {
  const process = watchProcess(address, second(500));
  expect(process.take(second(501), await scrapeOf(100, 7, 3))).toEqual(new Map());
  expect(process.take(second(506), await scrapeOf(100, 9, 4))).toEqual(
    new Map([
      ['request|GET /api/me|0.05', 2],
      ['missed|webform', 1],
    ]),
  );
});

test('counts everything of a process that started a minute earlier and answers late', async () => {
  const process = watchProcess(address, second(500));
  process.take(second(501), undefined);
  expect(process.take(second(506), await scrapeOf(440, 0, 3)).get('missed|webform')).toBe(3);
});

test('counts everything of a process that started later, also after a restart', async () => {
  const process = watchProcess(address, second(500));
  const all = new Map([
    ['request|GET /api/me|0.05', 8],
    ['failed|GET /api/me', 1],
    ['missed|webform', 3],
  ]);
  expect(process.take(second(510), await scrapeOf(501, 7, 3))).toEqual(all);
  // Its count is higher than before the restart.
  expect(process.take(second(520), await scrapeOf(515, 7, 3))).toEqual(all);
  expect(process.state()).toMatchObject({ up: true, service: 'gateway', restarts: 1 });
  expect(process.take(second(3_600 + 521), await scrapeOf(515, 7, 3))).toEqual(new Map());
  expect(process.state().restarts).toBe(0);
  // The clock was set back.
  for (const at of [530, 535]) process.take(second(at), await scrapeOf(515, 7, 3));
  expect(process.state().cpu).toBe(0);
});

test('reports a process that does not answer as down, and later continues from its last count', async () => {
  const process = watchProcess(address, second(500));
  expect(process.state()).toMatchObject({ up: false, service: null });
  process.take(second(510), await scrapeOf(100, 7, 3));
  expect(process.take(second(515), undefined)).toEqual(new Map());
  expect(process.state()).toMatchObject({ up: false, service: 'gateway', memory_bytes: null });
  expect(process.take(second(520), await scrapeOf(100, 8, 3)).get('request|GET /api/me|0.05')).toBe(1);
});

/**
 * Scrapes the address of a process that started in this minute, and returns the increase at the last of `lookups`: each
 * has a minute and the count at that time, or nothing if the address is missing then.
 */
async function newAfter(startedMinute: number, lookups: string) {
  const watch = watchAddresses();
  // Earlier than all other times.
  watch(['http://10.0.0.2:9080'], 0);
  let counts: Counts | undefined;
  for (const [minute, missed] of lookups.split(' ').map((lookup) => lookup.split('='))) {
    const at = second(60 * Number(minute));
    const [process] = watch(missed ? [address] : [], at);
    if (process) counts = process.take(at, await scrapeOf(60 * startedMinute, 0, Number(missed)));
  }
  return counts?.get('missed|webform') ?? 0;
}

test.each([
  ['of an old process that is first seen late', 10, '20=50', 0],
  ['of a young process', 18, '20=50', 50],
  ['of an old process whose address was missing briefly', 10, '20=50 21= 22=53', 3],
  ['of a young process whose address was missing briefly', 18, '19=50 20= 21=53', 3],
  ['of a process whose address was missing for longer than the window', 10, '20=50 21= 26= 27=53', 0],
])('counts the increase %s', async (_, started, lookups, expected) =>
  expect(await newAfter(started, lookups)).toBe(expected),
);
