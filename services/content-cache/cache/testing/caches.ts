import { createContentCache, type ContentCache, type ContentCacheOptions } from '../index.ts';

/**
 * Starts a cache of the test's own, as one process has it, with the times of production. Nothing waits to be cleared
 * after a connect unless `options.recover` says so.
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
