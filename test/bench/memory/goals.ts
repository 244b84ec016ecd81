import type { Verdict } from '../verdict.ts';
import type { Held } from './heap.ts';

/** By how much what is held may be more in the last third than in the second; which part of the requests may fail. */
export const goals = { heap: 0.1, sockets: 10, failed: 0.01 };

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** Whether what a process holds is flat: its samples, one a minute, at least three. The first third is its warming up. */
export function judge(name: string, samples: readonly Held[]): Verdict {
  const third = Math.floor(samples.length / 3);
  const of = (key: keyof Held, from: number) =>
    mean(samples.slice(from, from + third).map((each) => each[key]));
  const [second, last] = [samples.length - 2 * third, samples.length - third];
  const growth = of('heap', last) / of('heap', second) - 1;
  const sockets = of('sockets', last) - of('sockets', second);
  const resources = of('resources', last) - of('resources', second);
  const mb = (from: number) => (of('heap', from) / 1e6).toFixed(1);
  return {
    isHeld: growth <= goals.heap && Math.max(sockets, resources) <= goals.sockets,
    text: `${name}: ${mb(second)} then ${mb(last)} MB after a collection (${(growth * 100).toFixed(1)} %), sockets ${sockets.toFixed(1)} and handles ${resources.toFixed(1)} more`,
  };
}

/** Whether it was the mix that was meant: what fails holds nothing. */
export function judgeLoad(sent: number, failed: number): Verdict {
  return {
    isHeld: sent > 0 && failed <= sent * goals.failed,
    text: `${sent} requests, of which ${failed} were not answered as they should be`,
  };
}
