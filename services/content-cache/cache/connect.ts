import { parseRedisUrl, type RedisAddress } from '@content-platform/chassis';
import { Redis } from 'ioredis';
import { createClusterConnection } from './cluster.ts';
import type { CacheConnection, CacheConnectionOptions } from './connection.ts';
import { isDemoted, lacksReplicas } from './errors.ts';
import { clientSettings, createPrimary } from './primary.ts';
import { protocolScripts } from './scripts.ts';
import { openThroughSentinels } from './sentinels.ts';

/** The connection of a process to Redis, in whichever form it is given. */
export function createCacheConnection(options: CacheConnectionOptions): CacheConnection {
  const address = parseRedisUrl(options.url);
  return address.form === 'cluster'
    ? createClusterConnection(address, options)
    : createSingleConnection(address, options);
}

/** To one primary, whose address is given or is asked of sentinels before each connect. */
function createSingleConnection(
  address: Exclude<RedisAddress, { form: 'cluster' }>,
  options: CacheConnectionOptions,
): CacheConnection {
  const isWatched = address.form === 'sentinel';
  const primary = createPrimary({
    redis: isWatched ? openThroughSentinels(address) : new Redis(address.url, clientSettings),
    scripts: options.scripts ?? protocolScripts,
    recover: () => options.recover(),
    onStateChange: (state, reason) => options.onStateChange?.(state, reason),
    // One that has lost its replicas may have been replaced: the sentinels know.
    isOver: (error) => isDemoted(error) || (isWatched && lacksReplicas(error)),
  });
  return {
    get state() {
      return primary.state;
    },
    get timeouts() {
      return primary.timeouts;
    },
    start: primary.start,
    forReading: () => primary.nodeIn('usable'),
    clear: async (key) => primary.nodeIn('usable', 'recovering').clear(key),
    primaries: () => [primary.nodeIn('usable', 'recovering')],
    // All are its own.
    slotMap: async () => '',
    close: primary.close,
  };
}
