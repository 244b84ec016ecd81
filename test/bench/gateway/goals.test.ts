import { expect, test } from '@jest/globals';
import { spread, type Result } from './figures.ts';
import { judge } from './goals.ts';

/** A candidate whose three rounds took so much CPU. */
const took = (name: string, hasDuties: boolean, ...cpus: number[]): Result => ({
  name,
  does: '',
  hasDuties,
  rounds: [0, 1, 2].map((round) => ({ cpu: cpus[round] ?? cpus[0]!, perSecond: 1, p50: 1, p99: 1 })),
});

const others = [
  took('ours, a line each', true, 10),
  took('slow', true, 900),
  took('lean', true, 90, 100, 300),
  took('nginx, auth_request', true, 10),
  took('express + undici', false, 50),
  took('lean', false, 1),
];

test('the leanest Node gateway with such duties, and the pipe, are the measure, round by round', () => {
  const held = judge([took('ours', true, 80), ...others]);
  expect(held.map(({ isHeld }) => isHeld)).toEqual([true, true]);
  expect(held[0]!.text).toContain('0.80 × the leanest Node gateway with such duties, lean;');
  expect(held[1]!.text).toContain('1.60 × the bare pipe, express + undici;');
});

test('what takes more is told', () => {
  const isHeld = (cpu: number) => judge([took('ours', true, cpu), ...others]).map((each) => each.isHeld);
  expect(isHeld(81)).toEqual([true, false]);
  expect(isHeld(111)).toEqual([false, false]);
});

test('how far rounds are apart', () => {
  expect(spread(took('one', true, 90, 100, 120))).toBeCloseTo(0.3);
});
