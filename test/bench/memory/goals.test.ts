import { expect, test } from '@jest/globals';
import { judge, judgeLoad } from './goals.ts';

/** Samples of a process: MB of heap, and sockets. */
const held = (heaps: number[], sockets: number[] = heaps.map(() => 5), rss: number[] = heaps.map(() => 90)) =>
  heaps.map((mb, index) => ({
    heap: mb * 1e6,
    external: 0,
    rss: rss[index]! * 1e6,
    sockets: sockets[index]!,
    resources: sockets[index]!,
  }));

test('what is flat after its warming up is held', () => {
  expect(judge('one', held([10, 20, 50, 51, 50, 52])).isHeld).toBe(true);
  expect(judge('one', held([50, 50, 54])).isHeld).toBe(true);
  expect(judge('one', held([20, 30, 50, 54, 50, 54])).isHeld).toBe(true);
});

test('what goes on growing is told', () => {
  const { isHeld, text } = judge('one', held([30, 40, 50, 60, 70, 80]));
  expect(isHeld).toBe(false);
  expect(text).toContain('from 50.0 to 80.0 MB after a collection (60.0 %;');
});

test('so are sockets', () => {
  expect(judge('one', held([50, 50, 50, 50, 50, 50], [5, 5, 5, 6, 7, 9])).isHeld).toBe(false);
});

test('and memory that is not of the heap', () => {
  const same = [50, 50, 50, 50, 50, 50];
  expect(judge('one', held(same, same, [60, 80, 90, 98, 106, 114])).isHeld).toBe(false);
  expect(judge('one', held(same, same, [60, 80, 90, 95, 100, 105])).isHeld).toBe(true);
});

test('a load that is refused holds nothing', () => {
  expect(judgeLoad(1_000, 10).isHeld).toBe(true);
  expect(judgeLoad(1_000, 11).isHeld).toBe(false);
  expect(judgeLoad(0, 0).isHeld).toBe(false);
});
