import { cpuOfResult, type Result } from './figures.ts';

/** CPU of a request in ours may be so many times that of the others. */
export const goals = { leanest: 1.1, pipe: 1.6 };

export interface Verdict {
  isHeld: boolean;
  /** One line for a person. */
  text: string;
}

/** What is held of the goals; ours is the first of `results`. nginx is no Node gateway. */
export function judge([ours, ...others]: readonly Result[]): Verdict[] {
  const peers = others.filter(({ name }) => !/^(ours|nginx)/.test(name));
  const leanest = peers
    .filter(({ hasDuties }) => hasDuties)
    .toSorted((a, b) => cpuOfResult(a) - cpuOfResult(b))[0]!;
  const pipe = peers.find(({ name }) => name === 'express + undici')!;
  const compare = (what: string, other: Result, goal: number): Verdict => {
    const ratio = cpuOfResult(ours!) / cpuOfResult(other);
    const text = `ours takes ${ratio.toFixed(2)} × ${what}, ${other.name}; the goal is ${goal} ×`;
    return { isHeld: ratio <= goal, text };
  };
  return [
    compare('the leanest Node gateway with the same duties', leanest, goals.leanest),
    compare('the bare pipe', pipe, goals.pipe),
  ];
}
