import type { CacheConnection } from '../connection.ts';
import type { ContentCache, ContentCacheOptions } from '../index.ts';
import { createCacheConnection } from '../index.ts';
import { calledAfterEach } from '../../../../test/support/called-after-each.ts';
import { startReplication, type Replication } from '../../../../test/support/redis-replication.ts';
import { startRedis, type RedisServer } from '../../../../test/support/redis-server.ts';
import { until } from '../../../../test/support/wait.ts';
import { protocolScripts, startCache } from './caches.ts';

export const untilUsable = (cache: ContentCache) =>
  until('the cache is usable', () => cache.state === 'usable');

/** Runs `work` while the server refuses to write. */
export async function whileRefusing({ admin }: RedisServer, work: () => Promise<unknown>): Promise<void> {
  await admin.config('SET', 'min-replicas-to-write', '1');
  try {
    await work();
  } finally {
    await admin.config('SET', 'min-replicas-to-write', '0');
  }
}

/** Starts caches and servers for a test, and closes them after the test in reverse order. */
export function closedAfterEach() {
  const closing = calledAfterEach();
  return {
    onEnd: (close: () => unknown) => void closing.push(close),
    async cache(url: string, options?: Partial<ContentCacheOptions>): Promise<ContentCache> {
      const cache = await startCache(url, options);
      closing.push(cache.close);
      return cache;
    },
    /** A connection without a cache on it. */
    async connection(url: string): Promise<CacheConnection> {
      const connection = createCacheConnection({ url, scripts: protocolScripts, recover: async () => {} });
      closing.push(connection.close);
      await connection.start();
      return connection;
    },
    async replication(...of: Parameters<typeof startReplication>): Promise<Replication> {
      const stores = await startReplication(...of);
      closing.push(stores.stop);
      return stores;
    },
    async server(): Promise<RedisServer> {
      const server = await startRedis({ 'repl-diskless-sync-delay': '0' });
      closing.push(() => {
        server.resume();
        return server.stop();
      });
      return server;
    },
  };
}
