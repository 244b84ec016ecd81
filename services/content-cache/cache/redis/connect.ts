import { parseRedisUrl } from '@content-platform/chassis';
import { Redis } from 'ioredis';
import type { CacheConnection, CacheConnectionOptions } from '../connection.ts';
import { TooFewReplicas } from '../errors.ts';
import { createClusterConnection } from './cluster.ts';
import { clientSettings, createPrimary } from './primary.ts';
import { openThroughSentinels } from './sentinels.ts';

/** Creates the connection of a process to Redis: to a single server, through sentinels or to a cluster. */
export function createCacheConnection(options: CacheConnectionOptions): CacheConnection {
  const address = parseRedisUrl(options.url);
  if (address.form === 'cluster') return createClusterConnection(address, options);
  const hasSentinels = address.form === 'sentinel';
  const primary = createPrimary({
    redis: hasSentinels ? openThroughSentinels(address) : new Redis(address.url, clientSettings),
    scripts: options.scripts,
    isCluster: false,
    recover: () => options.recover(),
    onStateChange: (state, reason) => options.onStateChange?.(state, reason),
    onError(error) {
      // A primary without enough replicas may have been replaced: reconnecting asks the sentinels.
      if (hasSentinels && error instanceof TooFewReplicas) primary.disconnect(error);
    },
  });
  return {
    get state() {
      return primary.state;
    },
    start: primary.start,
    forReading: primary.forReading,
    clear: async (key) => primary.forClearing().clear(key),
    primaries: () => [primary.forClearing()],
    slotMap: async () => 'all slots',
    close: primary.close,
  };
}
