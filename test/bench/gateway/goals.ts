import { median } from '../percentiles.ts';
import type { Verdict } from '../verdict.ts';
import type { Seen } from './job.ts';

/** One round of a candidate; `cpu` is what it took for a request, in µs. */
export type Round = Seen & { cpu: number };

export interface Result {
  name: string;
  does: string;
  hasDuties: boolean;
  rounds: Round[];
}

/** CPU of a request in ours may be so many times that of the others. */
const goals = { leanest: 1.1, pipe: 1.6 };

/** CPU a request, in µs: the median of the rounds. */
const cpuOfResult = ({ rounds }: Result): number => median(rounds.map(({ cpu }) => cpu));

/** How many times as much CPU `one` takes as `other`: the median over the rounds, as the machine is faster in some. */
const ratioOf = (one: Result, other: Result): number =>
  median(one.rounds.map(({ cpu }, round) => cpu / other.rounds[round]!.cpu));

/** Whether its rounds are no further apart than 15 % of the median. */
export function isCalm({ rounds }: Result): boolean {
  const all = rounds.map(({ cpu }) => cpu);
  return Math.max(...all) - Math.min(...all) <= 0.15 * median(all);
}

/**
 * Compares the measurements with the goals; the platform's gateway is the first of `results`. nginx is excluded because
 * it is no Node gateway.
 */
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
      text: `${toLeanest.toFixed(2)} × the CPU of the leanest Node gateway with the same work (${leanest.name}); the goal is ${goals.leanest} × (with a log line for each request, as the other writes: ${ratioOf(lines, leanest).toFixed(2)} ×)`,
    },
    {
      isHeld: toPipe <= goals.pipe,
      text: `${toPipe.toFixed(2)} × the CPU of a bare proxy (${pipe.name}); the goal is ${goals.pipe} ×`,
    },
  ];
}
