import { median } from '../percentiles.ts';
import type { Seen } from './job.ts';

/** One round of a candidate; `cpu` is what it took for a request, in µs. */
export type Round = Seen & { cpu: number };

export interface Result {
  name: string;
  does: string;
  hasDuties: boolean;
  rounds: Round[];
}

const sorted = (values: number[]): number[] => values.toSorted((a, b) => a - b);

/** CPU a request, in µs: the median of the rounds. */
export const cpuOfResult = ({ rounds }: Result): number => median(rounds.map(({ cpu }) => cpu));

/** How many times as much CPU `one` takes as `other`: the median over the rounds, as the machine is faster in some. */
export const ratioOf = (one: Result, other: Result): number =>
  median(one.rounds.map(({ cpu }, round) => cpu / other.rounds[round]!.cpu));

/** How far its rounds are apart, as a part of the median. */
export function spread({ rounds }: Result): number {
  const all = sorted(rounds.map(({ cpu }) => cpu));
  return (all.at(-1)! - all[0]!) / median(all);
}

const columns = [22, 20, 11, 9, 9, 9];
const line = (cells: string[]): string =>
  cells
    .map((cell, index) => (index === 0 ? cell.padEnd(columns[0]!) : cell.padStart(columns[index]!)))
    .join('');

/** A table of medians; the last column is CPU by that of `ours`. */
export function tableOf(results: readonly Result[], ours: Result): string {
  const head = line(['', 'CPU µs (min–max)', 'a second', 'p50 ms', 'p99 ms', 'by ours']);
  const rows = results.map((result) => {
    const cpus = sorted(result.rounds.map(({ cpu }) => cpu));
    const of = (pick: (round: Round) => number) => median(result.rounds.map(pick));
    const cpu = cpuOfResult(result);
    return line([
      result.name,
      `${cpu.toFixed(0)} (${cpus[0]!.toFixed(0)}–${cpus.at(-1)!.toFixed(0)})`,
      of(({ perSecond }) => perSecond).toFixed(0),
      of(({ p50 }) => p50).toFixed(1),
      of(({ p99 }) => p99).toFixed(1),
      ratioOf(result, ours).toFixed(2),
    ]);
  });
  return [head, ...rows].join('\n');
}
