import { cpuOfResult, ratioOf, type Result } from './figures.ts';
import type { Verdict } from '../verdict.ts';

/** CPU of a request in ours may be so many times that of the others. */
export const goals = { leanest: 1.1, pipe: 1.6 };

/** What is held of the goals; ours is the first of `results`. nginx is no Node gateway. */
export function judge([ours, ...others]: readonly Result[]): Verdict[] {
  const peers = others.filter(({ name }) => !/^(ours|nginx)/.test(name));
  const leanest = peers
    .filter(({ hasDuties }) => hasDuties)
    .toSorted((a, b) => cpuOfResult(a) - cpuOfResult(b))[0]!;
  const pipe = peers.find(({ name }) => name === 'express + undici')!;
  const lines = others.find(({ name }) => name === 'ours, a line each')!;
  const toLeanest = ratioOf(ours!, leanest);
  const toPipe = ratioOf(ours!, pipe);
  return [
    {
      isHeld: toLeanest <= goals.leanest,
      text: `ours as delivered takes ${toLeanest.toFixed(2)} × the leanest Node gateway with such duties, ${leanest.name}; the goal is ${goals.leanest} × (with a log line for each request, as that writes: ${ratioOf(lines, leanest).toFixed(2)} ×)`,
    },
    {
      isHeld: toPipe <= goals.pipe,
      text: `ours as delivered takes ${toPipe.toFixed(2)} × the bare pipe, ${pipe.name}; the goal is ${goals.pipe} ×`,
    },
  ];
}
