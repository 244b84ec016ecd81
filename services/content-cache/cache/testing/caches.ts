import type { CacheConnection } from '../connection.ts';
import { createContentCache, type ContentCache, type ContentCacheOptions } from '../index.ts';
import { createScripts } from '../protocol/scripts.ts';
import { createCacheConnection } from '../redis/connect.ts';

/** The scripts for a primary that needs no replicas. */
export const protocolScripts = createScripts({ atLeast: 0, maxLagSeconds: 0 });

/**
 * Starts a cache as one process has it, with the times of production. By default there is nothing to clear after a
 * connect.
 */
export async function startCache(
  url: string,
  options: Partial<ContentCacheOptions> = {},
): Promise<ContentCache> {
  const cache = createContentCache({
    url,
    ttlMs: 300_000,
    negativeTtlMs: 30_000,
    unmanagedKeys: 'sweep',
    recover: async () => {},
    ...options,
  });
  await cache.start();
  return cache;
}

/** Starts a connection without a cache on it. */
export async function startConnection(url: string): Promise<CacheConnection> {
  const connection = createCacheConnection({ url, scripts: protocolScripts, recover: async () => {} });
  await connection.start();
  return connection;
}
