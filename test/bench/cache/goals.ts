import type { Clears, Together } from './clears.ts';
import { median, ratioText } from '../percentiles.ts';
import type { HitRound, Race, Storm } from './reads.ts';
import type { Verdict } from '../../results/section.ts';

/**
 * Goals of the platform. hitService, hitRedis: CPU of a hit relative to the plain service. staleReads: number of stale
 * reads. stormReads: database reads for a thousand readers of one record. growth: Redis's CPU for a clear without a sweep,
 * with the most keys relative to the fewest. sweepMs: duration of the slowest sweep of the most keys, for one clear or
 * for several that share it. scans: scans for a hundred simultaneous clears.
 */
export const goals = {
  hitService: 1.3,
  hitRedis: 2,
  staleReads: 0,
  stormReads: 1,
  growth: 1.3,
  sweepMs: 1_000,
  scans: 2,
};

export interface CacheResult {
  name: string;
  does: string;
  rounds: HitRound[];
  /** Races in one process and across two. */
  storms: { one: Storm[]; two: Storm[] };
  race: Race;
}

export interface ClearResult {
  name: string;
  does: string;
  sizes: Clears[];
}

/** Compares the platform's cache, the first result, with the goals. */
export function judge(caches: CacheResult[], clears: ClearResult[], together: Together): Verdict[] {
  const { rounds: hits, storms, race } = caches[0]!;
  const { rounds: plainHits } = caches.find(({ name }) => name === 'GET, SET, DEL')!;
  const sizesOf = (wanted: string) => clears.find(({ name }) => name === wanted)!.sizes;
  const [none, sweep] = [sizesOf('ours, none'), sizesOf('ours, sweep')];
  // The sizes are in ascending order of the number of keys.
  const [fewest, most] = [none[0]!, none.at(-1)!];
  const growth = most.redisCpu / fewest.redisCpu;
  const reads = Math.max(...[...storms.one, ...storms.two].map((storm) => storm.reads));
  const slowest = sweep.at(-1)!;
  const sharedSweepMs = together.ms / together.scans;
  const hit = (what: string, part: 'service' | 'redis', goal: number): Verdict => {
    const ratios = hits.map((round, index) => round[part] / plainHits[index]![part]);
    return {
      isHeld: median(ratios) <= goal,
      text: `CPU of ${what} for a hit: ${ratioText(ratios)} that with GET, SET, DEL; the goal is ${goal} ×`,
    };
  };
  return [
    hit('content-cache', 'service', goals.hitService),
    hit('Redis', 'redis', goals.hitRedis),
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
      isHeld: Math.max(slowest.times.max, sharedSweepMs) < goals.sweepMs,
      text: `CACHE_UNMANAGED_KEYS=sweep: a sweep of ${slowest.keys} keys: ${slowest.times.p50.toFixed(0)} ms (median), ${slowest.times.max.toFixed(0)} max, ${sharedSweepMs.toFixed(0)} for a sweep that a hundred clears share; the goal is under ${goals.sweepMs}`,
    },
    {
      isHeld: together.scans <= goals.scans + 0.1,
      text: `CACHE_UNMANAGED_KEYS=sweep: a hundred clears at once scan ${together.keys} keys ${together.scans.toFixed(2)} times, in ${together.ms.toFixed(0)} ms; the goal is ${goals.scans}`,
    },
  ];
}
