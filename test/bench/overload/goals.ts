import type { Probed } from './probe.ts';
import type { Seen } from '../load/job.ts';
import type { Verdict } from '../../results/section.ts';

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

/** Compares one of the heaviest loads with the goals. */
function judgeStep(step: Step): Verdict[] {
  const { seen, multiple, connections } = step;
  const probed = step.probed!;
  const load = `at ${multiple} × over ${connections} connections`;
  const part = shareInTime(step);
  const goal = goals.goodput[connections]!;
  const others = Object.keys(seen.statuses).filter((status) => !['200', '429', '503'].includes(status));
  const lost = seen.gaveUp + seen.broken;
  const unsent =
    seen.unsent > 0
      ? `; ${seen.unsent} more were not sent, because every connection of the load generator was waiting`
      : '';
  const refusal = seen.firstRefused?.p99 ?? 0;
  const failed = probed.health.failed + probed.metrics.failed;
  return [
    {
      isHeld: part >= goal,
      text: `${load} the requests answered within 500 ms are ${(part * 100).toFixed(0)} % of the peak; the goal is ${goal * 100} %`,
    },
    {
      isHeld: refusal < goals.refusal,
      text: `${load} the first refusal of a connection takes ${refusal.toFixed(0)} ms (p99); the goal is ${goals.refusal} ms`,
    },
    {
      isHeld: others.length === 0 && seen.withoutRetryAfter === 0 && lost === 0,
      text: `${load} all other requests get 429 or 503 with Retry-After: ${lost} of ${seen.due - seen.unsent} had no reply, ${seen.withoutRetryAfter} no Retry-After, other statuses: ${others.join(', ') || 'none'}${unsent}`,
    },
    {
      isHeld: failed === 0 && probed.health.max < goals.health,
      text: `${load} health and metrics reply: ${failed} failures, ${probed.health.max.toFixed(0)} and ${probed.metrics.max.toFixed(0)} ms at most; the goal for health is ${goals.health} ms`,
    },
    {
      isHeld: probed.recovery < goals.recovery,
      text: `normal operation ${probed.recovery.toFixed(0)} ms after ${multiple} × over ${connections} connections; the goal is ${goals.recovery} ms`,
    },
  ];
}

/** Compares the heaviest loads with the goals. `capacities`: before the first load and after each. */
export function judge(capacities: readonly number[], steps: readonly Step[]): Verdict[] {
  const [capacity, afterwards] = [capacities[0]!, capacities.at(-1)!];
  const highest = steps.at(-1)!.multiple;
  return [
    ...steps.filter(({ multiple }) => multiple === highest).flatMap(judgeStep),
    {
      isHeld: afterwards >= capacity * goals.afterwards,
      text: `over keep-alive connections ${afterwards.toFixed(0)} a second are answered after the load, ${((100 * afterwards) / capacity).toFixed(0)} % of the rate before; the goal is ${goals.afterwards * 100} %`,
    },
  ];
}
