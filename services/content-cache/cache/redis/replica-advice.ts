import { repeat, type Logger } from '@content-platform/chassis';
import type { Replication } from '../connection.ts';

/** Returns the setting to change, if any: `atLeast` replicas and the primary must be the majority of the shard's nodes. */
export function replicaAdvice(primaries: Replication[], atLeast: number): string | undefined {
  for (const { replicas, minToWrite } of primaries) {
    if (replicas === 0) continue;
    const needed = Math.floor((replicas + 1) / 2);
    if (atLeast >= needed && (minToWrite ?? atLeast) === atLeast) continue;
    const wanted = Math.max(needed, atLeast, minToWrite ?? 0);
    const has = `a Redis primary has ${replicas} ${replicas === 1 ? 'replica' : 'replicas'}`;
    const now = `${minToWrite ?? 'unknown'} and ${atLeast}`;
    return `${has}: set min-replicas-to-write of Redis and CACHE_MIN_REPLICAS to ${wanted} (they are ${now}), or a failover can bring back what was cleared`;
  }
  return undefined;
}

/** Checks every minute until there is a setting to change, and logs it. Returns a function that stops the checks. */
export function warnOfReplicas(cache: { advice(): Promise<string | undefined> }, logger: Logger) {
  let isWarned = false;
  async function check(): Promise<void> {
    if (isWarned) return;
    // An unreachable Redis is logged elsewhere.
    const advice = await cache.advice().catch(() => undefined);
    if (advice) logger.warn(advice);
    isWarned = advice !== undefined;
  }
  return repeat(check, { everyMs: 60_000, firstMs: 1_000, logger, failure: 'replicas were not counted' });
}
