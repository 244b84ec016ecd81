import type { Probed } from './probe.ts';
import type { Seen } from '../load/job.ts';
import type { Verdict } from '../../results/section.ts';
import { median } from '../percentiles.ts';

/** Minimum shares: goodput of the peak, by connections; afterwards of the first capacity. The rest: maxima in ms. */
export const goals = {
  goodput: { 2_000: 0.85, 6_000: 0.75 } as Record<number, number>,
  refusal: 100,
  health: 500,
  recovery: 5_000,
  afterwards: 0.9,
};

/** One load, as a multiple of the capacity, and the results of the probes during it. */
export interface Step {
  multiple: number;
  connections: number;
  perSecond: number;
  /** Mean of the capacities before and after the load, in replies per second over few connections. */
  capacity: number;
  seen: Seen;
  probed: Probed | undefined;
}

/** Returns the replies within 500 ms as a share of the peak: the capacity, or the goodput of the load if higher. */
export const shareInTime = ({ seen, capacity }: Step): number =>
  seen.goodputInTime / Math.max(capacity, seen.goodput);

/** Medians of loads of one kind, because the speed of a machine changes from load to load. */
export const summaryOf = (steps: readonly Step[]) => ({
  inTime: median(steps.map(shareInTime)),
  p99: median(steps.map(({ seen }) => seen.good?.p99 ?? 0)),
  /** Median of the loads in which the gateway refused requests; 0 if it refused none. */
  firstRefusal: median(steps.flatMap(({ seen }) => seen.firstRefused?.p99 ?? [])) || 0,
  /** The sum: requests without a reply. */
  lost: steps.reduce((sum, { seen }) => sum + seen.gaveUp + seen.broken, 0),
});

/** Returns the loads that exceed the capacity most, by their connections. */
export function heaviestOf(steps: readonly Step[]): { connections: number; loads: Step[] }[] {
  const highest = Math.max(...steps.map(({ multiple }) => multiple));
  return Object.keys(goals.goodput)
    .map(Number)
    .map((connections) => ({
      connections,
      loads: steps.filter((step) => step.multiple === highest && step.connections === connections),
    }));
}

/** Compares loads of one kind with the goals. */
function judgeLoads(connections: number, steps: readonly Step[]): Verdict[] {
  const { inTime, firstRefusal, lost } = summaryOf(steps);
  const percent = (share: number) => (share * 100).toFixed(0);
  const load = `at ${steps[0]!.multiple} × over ${connections} connections`;
  const goal = goals.goodput[connections]!;
  const sum = (of: (step: Step) => number) => steps.reduce((total, step) => total + of(step), 0);
  const highest = (of: (probed: Probed) => number) => Math.max(...steps.map(({ probed }) => of(probed!)));
  const statuses = [...new Set(steps.flatMap(({ seen }) => Object.keys(seen.statuses)))];
  const others = statuses.filter((status) => !['200', '429', '503'].includes(status));
  const withoutRetryAfter = sum(({ seen }) => seen.withoutRetryAfter);
  const unsent = sum(({ seen }) => seen.unsent);
  const unsentText =
    unsent > 0
      ? `; ${unsent} more were not sent, because every connection of the load generator was waiting`
      : '';
  const failed = sum(({ probed }) => probed!.health.failed + probed!.metrics.failed);
  const health = highest((probed) => probed.health.max);
  const recovery = highest((probed) => probed.recovery);
  return [
    {
      isHeld: inTime >= goal,
      text: `${load} the requests answered within 500 ms are ${percent(inTime)} % of the peak (median of ${steps.map((step) => percent(shareInTime(step))).join(', ')}); the goal is ${goal * 100} %`,
    },
    {
      isHeld: firstRefusal < goals.refusal,
      text: `${load} the first refusal of a connection takes ${firstRefusal.toFixed(0)} ms (median of the p99); the goal is ${goals.refusal} ms`,
    },
    {
      isHeld: others.length === 0 && withoutRetryAfter === 0 && lost === 0,
      text: `${load} all other requests get 429 or 503 with Retry-After: ${lost} of ${sum(({ seen }) => seen.due - seen.unsent)} had no reply, ${withoutRetryAfter} no Retry-After, other statuses: ${others.join(', ') || 'none'}${unsentText}`,
    },
    {
      isHeld: failed === 0 && health < goals.health,
      text: `${load} health and metrics reply: ${failed} failures, ${health.toFixed(0)} and ${highest((probed) => probed.metrics.max).toFixed(0)} ms at most; the goal for health is ${goals.health} ms`,
    },
    {
      isHeld: recovery < goals.recovery,
      text: `${load} normal operation returns within ${recovery.toFixed(0)} ms after each load; the goal is ${goals.recovery} ms`,
    },
  ];
}

/** Compares the heaviest loads with the goals. `capacities`: before the first load and after each. */
export function judge(capacities: readonly number[], steps: readonly Step[]): Verdict[] {
  const [capacity, afterwards] = [capacities[0]!, capacities.at(-1)!];
  return [
    ...heaviestOf(steps).flatMap(({ connections, loads }) => judgeLoads(connections, loads)),
    {
      isHeld: afterwards >= capacity * goals.afterwards,
      text: `over keep-alive connections ${afterwards.toFixed(0)} a second are answered after the load, ${((100 * afterwards) / capacity).toFixed(0)} % of the rate before; the goal is ${goals.afterwards * 100} %`,
    },
  ];
}
