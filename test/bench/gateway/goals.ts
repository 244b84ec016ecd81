import { median, ratioText } from '../percentiles.ts';
import type { Verdict } from '../../results/section.ts';
import type { Seen } from './job.ts';

/** One round of a candidate; `cpu` is the CPU time per request, in µs. */
export type Round = Seen & { cpu: number };

export interface Result {
  name: string;
  does: string;
  hasDuties: boolean;
  rounds: Round[];
}

/** Maximum CPU per request of the platform's gateway, as a multiple of the other candidates. */
const goals = { leanest: 1.2, pipe: 1.6 };

/** Returns the CPU per request in µs: the median of the rounds. */
const cpuOfResult = ({ rounds }: Result): number => median(rounds.map(({ cpu }) => cpu));

/** Returns the CPU of `one` as a multiple of `other` in each round, because the machine's speed varies. */
const ratiosOf = (one: Result, other: Result): number[] =>
  one.rounds.map(({ cpu }, round) => cpu / other.rounds[round]!.cpu);

/** Compares the platform's gateway, the first result, with the goals. Ignores nginx, which is no Node gateway. */
export function judge([ours, ...others]: readonly Result[]): Verdict[] {
  const peers = others.filter(({ name }) => !/^(ours|nginx)/.test(name));
  const leanest = peers
    .filter(({ hasDuties }) => hasDuties)
    .toSorted((a, b) => cpuOfResult(a) - cpuOfResult(b))[0]!;
  const pipe = peers.find(({ name }) => name === 'express + undici')!;
  const lines = others.find(({ name }) => name === 'ours, a line each')!;
  const [toLeanest, toPipe] = [ratiosOf(ours!, leanest), ratiosOf(ours!, pipe)];
  return [
    {
      isHeld: median(toLeanest) <= goals.leanest,
      text: `${ratioText(toLeanest)} the CPU of the leanest Node gateway with the same work (${leanest.name}); the goal is ${goals.leanest} × (with a log line for each request, as the other writes: ${ratioText(ratiosOf(lines, leanest))})`,
    },
    {
      isHeld: median(toPipe) <= goals.pipe,
      text: `${ratioText(toPipe)} the CPU of a bare proxy (${pipe.name}); the goal is ${goals.pipe} ×`,
    },
  ];
}
