import type { Probed } from './probe.ts';
import type { Seen } from '../load/job.ts';
import type { Verdict } from '../../results/section.ts';

/** `goodput`: share of the peak; `afterwards`: share of the earlier capacity over kept connections; times in ms. */
export const goals = { goodput: 0.9, refusal: 50, recovery: 5_000, afterwards: 0.9 };

/** One load, as a multiple of the capacity, and the results of the probes during it. */
export interface Step {
  multiple: number;
  perSecond: number;
  seen: Seen;
  probed: Probed;
}

/** Returns the maximum number of replies per second. */
export const peakOf = (capacity: number, steps: readonly Step[]): number =>
  Math.max(capacity, ...steps.map(({ seen }) => seen.goodput));

/**
 * Compares the measurements with the goals; the last step is the heaviest. `afterwards`: requests per second, like
 * `capacity`.
 */
export function judge(capacity: number, steps: readonly Step[], afterwards: number): Verdict[] {
  const { seen, probed, multiple } = steps.at(-1)!;
  const part = seen.goodputInTime / peakOf(capacity, steps);
  const others = Object.keys(seen.statuses).filter((status) => !['200', '429', '503'].includes(status));
  const lost = seen.gaveUp + seen.broken;
  const unsent =
    seen.unsent > 0
      ? `; ${seen.unsent} more were not sent, because every connection of the load generator was waiting`
      : '';
  const refusal = seen.refused?.p99 ?? 0;
  const failed = probed.health.failed + probed.metrics.failed;
  return [
    {
      isHeld: part >= goals.goodput,
      text: `at ${multiple} × the requests answered within 500 ms are ${(part * 100).toFixed(0)} % of the peak; the goal is ${goals.goodput * 100} %`,
    },
    {
      isHeld: refusal < goals.refusal,
      text: `a refusal takes ${refusal.toFixed(0)} ms (p99); the goal is ${goals.refusal} ms`,
    },
    {
      isHeld: others.length === 0 && seen.withoutRetryAfter === 0 && lost === 0,
      text: `all other requests get 429 or 503 with Retry-After: ${lost} of ${seen.due - seen.unsent} had no reply, ${seen.withoutRetryAfter} no Retry-After, other statuses: ${others.join(', ') || 'none'}${unsent}`,
    },
    {
      isHeld: failed === 0,
      text: `health and metrics reply: ${failed} failures, ${probed.health.max.toFixed(0)} and ${probed.metrics.max.toFixed(0)} ms at most`,
    },
    {
      isHeld: probed.recovery < goals.recovery,
      text: `normal operation ${probed.recovery.toFixed(0)} ms after the end of the load; the goal is ${goals.recovery} ms`,
    },
    {
      isHeld: afterwards >= capacity * goals.afterwards,
      text: `over keep-alive connections ${afterwards.toFixed(0)} a second are answered after the load, ${((100 * afterwards) / capacity).toFixed(0)} % of the rate before; the goal is ${goals.afterwards * 100} %`,
    },
  ];
}
