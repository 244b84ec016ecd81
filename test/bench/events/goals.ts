import type { Delay } from './delay.ts';
import type { Throughput } from './throughput.ts';
import type { Verdict } from '../../results/section.ts';

/**
 * For one content-cache with CACHE_UNMANAGED_KEYS=none: events per second; ms from sending to clear; the p99 of a call in
 * multiples of the bare server's p99.
 */
export const goals = { eventsPerSecond: 20_000, eventP99: 250, callTimes: 5 };

export interface Measured {
  throughput: Throughput;
  events: Delay;
  calls: Delay;
  /** The same load on a bare Node server. */
  bare: Delay;
}

const none = 'CACHE_UNMANAGED_KEYS=none: ';

export function judge({ throughput, events, calls, bare }: Measured): Verdict[] {
  const p99 = (what: string, { perSecond, times, errors }: Delay, limit: number, goal: string): Verdict => ({
    isHeld: times.p99 <= limit && errors.length === 0,
    text: `${none}${what} at ${perSecond} a second: p99 ${times.p99.toFixed(1)} ms, ${goal}${errors.length > 0 ? `; errors: ${errors.join('; ')}` : ''}`,
  });
  const ratio = calls.times.p99 / bare.times.p99;
  const { events: count, perSecond } = throughput;
  return [
    {
      isHeld: perSecond >= goals.eventsPerSecond,
      text: `${none}${count} waiting events: ${perSecond.toFixed(0)} cleared a second, the goal is ${goals.eventsPerSecond}`,
    },
    p99('from an event to the deleted key,', events, goals.eventP99, `the goal is at most ${goals.eventP99}`),
    p99(
      'a call of clear-model through the gateway,',
      calls,
      goals.callTimes * bare.times.p99,
      `${ratio.toFixed(1)} times that of a bare Node server in the same run (${bare.times.p99.toFixed(1)} ms), the goal is at most ${goals.callTimes} times`,
    ),
  ];
}
