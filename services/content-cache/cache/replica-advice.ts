import type { ReplicaGuard } from './scripts.ts';

/** What a primary says of its replicas. */
export interface Replication {
  replicas: number;
  /** its min-replicas-to-write; undefined where its user may not ask for that */
  minToWrite: number | undefined;
}

/**
 * One line that says what to set, for a primary whose replicas are not counted on, or undefined when all is well: so
 * many replicas must be asked for that they and the primary are more than half of the nodes of the shard.
 */
export function adviceFor(primaries: Replication[], { atLeast }: ReplicaGuard): string | undefined {
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
