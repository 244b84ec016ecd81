import { expect, test } from '@jest/globals';
import { judge, judgeLoad } from './goals.ts';

/** Samples of a process: MB of heap, and sockets. */
const held = (heaps: number[], sockets: number[] = heaps.map(() => 5)) =>
  heaps.map((mb, index) => ({
    heap: mb * 1e6,
    external: 0,
    rss: 0,
    sockets: sockets[index]!,
    resources: sockets[index]!,
  }));

test('what is flat after its warming up is held', () => {
  expect(judge('one', held([10, 20, 50, 51, 50, 52])).isHeld).toBe(true);
  expect(judge('one', held([50, 50, 54])).isHeld).toBe(true);
});

test('what goes on growing is told', () => {
  const { isHeld, text } = judge('one', held([30, 40, 50, 60, 70, 80]));
  expect(isHeld).toBe(false);
  expect(text).toContain('55.0 then 75.0 MB after a collection (36.4 %)');
});

test('so are sockets', () => {
  expect(judge('one', held([50, 50, 50, 50, 50, 50], [5, 5, 5, 5, 30, 60])).isHeld).toBe(false);
});

test('a load that is refused holds nothing', () => {
  expect(judgeLoad(1_000, 10).isHeld).toBe(true);
  expect(judgeLoad(1_000, 11).isHeld).toBe(false);
  expect(judgeLoad(0, 0).isHeld).toBe(false);
});
