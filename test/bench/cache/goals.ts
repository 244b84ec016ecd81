import type { Clears, Together } from './clears.ts';
import type { Race, Storm } from './reads.ts';
import type { Verdict } from '../../results/section.ts';

/**
 * Goals of the platform. staleReads: number of stale reads. stormReads: database reads for a thousand readers of one
 * record. growth: Redis's CPU for a clear without a sweep, with the most keys relative to the fewest. sweepMs: duration of
 * the slowest clear with a sweep, with the most keys, alone or shared. scans: scans for a hundred simultaneous sweeps.
 */
export const goals = { staleReads: 0, stormReads: 1, growth: 1.3, sweepMs: 1_000, scans: 2 };

export interface Measured {
  race: Race;
  /** Races in one process and across two. */
  storms: Storm[];
  /** In ascending order of the number of keys. */
  none: Clears[];
  sweep: Clears[];
  together: Together;
}

export function judge({ race, storms, none, sweep, together }: Measured): Verdict[] {
  const [fewest, most] = [none[0]!, none.at(-1)!];
  const growth = most.redisCpu / fewest.redisCpu;
  const reads = Math.max(...storms.map((storm) => storm.reads));
  const slowest = sweep.at(-1)!;
  const shared = together.ms / together.scans;
  return [
    {
      isHeld: race.stale <= goals.staleReads && race.reads > 0 && race.clears > 0,
      text: `stale reads in the race: ${race.stale} of ${race.reads}, with ${race.clears} clears`,
    },
    {
      isHeld: reads === goals.stormReads,
      text: `database reads in a storm on one key: ${reads}, the goal is ${goals.stormReads}`,
    },
    {
      isHeld: growth <= goals.growth,
      text: `CACHE_UNMANAGED_KEYS=none: Redis CPU for a clear among ${most.keys} keys: ${growth.toFixed(2)} × the CPU among ${fewest.keys}; the goal is ${goals.growth} ×`,
    },
    {
      isHeld: Math.max(slowest.times.max, shared) < goals.sweepMs,
      text: `CACHE_UNMANAGED_KEYS=sweep: a sweep of ${slowest.keys} keys: ${slowest.times.p50.toFixed(0)} ms (median), ${slowest.times.max.toFixed(0)} max, ${shared.toFixed(0)} for each of a hundred clears that share a sweep; the goal is under ${goals.sweepMs}`,
    },
    {
      isHeld: together.scans <= goals.scans + 0.1,
      text: `CACHE_UNMANAGED_KEYS=sweep: a hundred clears at once scan ${together.keys} keys ${together.scans.toFixed(2)} times; the goal is ${goals.scans}`,
    },
  ];
}
