import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@content-platform/chassis';
import type { Replication } from '../connection.ts';

/**
 * Returns the setting to change, or undefined if no primary needs a change. The required replicas and the primary must be
 * more than half of the shard's nodes.
 *
 * @param atLeast CACHE_MIN_REPLICAS
 */
export function replicaAdvice(primaries: Replication[], atLeast: number): string | undefined {
  for (const { replicas, minToWrite } of primaries) {
    if (replicas === 0) continue;
    const majority = Math.floor((replicas + 1) / 2);
    if (atLeast >= majority && (minToWrite ?? atLeast) === atLeast) continue;
    const wanted = Math.max(majority, atLeast, minToWrite ?? 0);
    const has = `a Redis primary has ${replicas} ${replicas === 1 ? 'replica' : 'replicas'}`;
    const now = `${minToWrite ?? 'unknown'} and ${atLeast}`;
    return `${has}: set min-replicas-to-write of Redis and CACHE_MIN_REPLICAS to ${wanted} (they are ${now}), or a failover can bring back what was cleared`;
  }
  return undefined;
}

const firstMs = 1_000;
const intervalMs = 60_000;

/** Logs the setting to change, once, if Redis has replicas that the cache does not count. Checks every minute. */
export async function warnOfReplicas(
  cache: { advice(): Promise<string | undefined> },
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  for (let pause = firstMs; !signal.aborted; pause = intervalMs) {
    // An unreachable Redis is logged elsewhere.
    const advice = await cache.advice().catch(() => undefined);
    if (advice) return logger.warn(advice);
    await sleep(pause, undefined, { signal }).catch(() => undefined);
  }
}
