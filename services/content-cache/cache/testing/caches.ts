import { createContentCache, type ContentCacheOptions } from '../index.ts';
import { createScripts } from '../protocol/scripts.ts';

const noReplicas = { atLeast: 0, maxLagSeconds: 0 };
/** The scripts for a primary that needs no replicas. */
export const protocolScripts = createScripts(noReplicas);

/**
 * Starts a cache as one process has it, with the times of production. By default there is nothing to clear after a
 * connect.
 */
export async function startCache(url: string, options: Partial<ContentCacheOptions> = {}) {
  const cache = createContentCache({
    url,
    ttlMs: 300_000,
    negativeTtlMs: 30_000,
    unmanagedKeys: 'sweep',
    replicaGuard: noReplicas,
    recover: async () => {},
    ...options,
  });
  await cache.start();
  return cache;
}
