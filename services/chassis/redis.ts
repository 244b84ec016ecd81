import { Cluster, Redis } from 'ioredis';
import type { Logger } from './logger.ts';
import { parseRedisUrl, sentinelLogin } from './redis-address.ts';

/** A command that has no answer after so many ms fails. */
export const redisTimeoutMs = 250;

/** One server, be it found through sentinels, or a cluster: commands are the same. */
export type RedisClient = Redis | Cluster;

/** How often a client of a cluster is looked at: else it leaves `close` at once. */
const stuckMs = 2_000;

const retryStrategy = (attempt: number) => Math.min(attempt * 100, 1_000);

/**
 * A connection whose commands fail at once while Redis is away, and in time while it hangs; it comes back by itself.
 * Nothing is queued or sent twice. In a cluster a command touches keys of one slot, and the others' go on when one
 * primary is away.
 *
 * @param url one of the forms of parseRedisUrl
 */
export function createRedis(url: string, logger: Logger): RedisClient {
  const redis = open(url);
  let away = false;
  redis.on('error', (error: unknown) => {
    if (!away) logger.warn({ error }, 'Redis is away');
    away = true;
  });
  redis.on('ready', () => {
    if (away) logger.info('Redis is back');
    away = false;
  });
  return redis;
}

function open(url: string): RedisClient {
  const address = parseRedisUrl(url);
  const perNode = {
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: redisTimeoutMs,
    connectTimeout: 1_000,
  };
  if (address.form === 'cluster') {
    const cluster = new Cluster(address.nodes, {
      enableOfflineQueue: false,
      clusterRetryStrategy: retryStrategy,
      clusterNodeRetryStrategy: retryStrategy,
      // Only what was refused because its slot is elsewhere is sent again, to the right node.
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
      maxRedirections: 3,
      slotsRefreshInterval: 2_000,
      redisOptions: { ...perNode, ...address.access },
    });
    connectWhenStuck(cluster);
    return cluster;
  }
  const settings = {
    ...perNode,
    enableOfflineQueue: false,
    retryStrategy,
    // Commands of one moment are one write. In a cluster they would wait for it while it is away, instead of failing.
    enableAutoPipelining: true,
  };
  if (address.form === 'single') return new Redis(address.url, settings);
  const { sentinels, name, access } = address;
  const { username, password } = sentinelLogin(access);
  return new Redis({
    ...settings,
    ...access,
    sentinels,
    name,
    sentinelRetryStrategy: retryStrategy,
    sentinelCommandTimeout: redisTimeoutMs,
    ...(password ? { sentinelUsername: username!, sentinelPassword: password } : {}),
    ...(access.tls ? { sentinelTLS: access.tls, enableTLSForSentinelMode: true } : {}),
  });
}

/**
 * When its last connection ends just while it looks up the names of the nodes, ioredis 6.0.0 stays `close` and tries no
 * more (lib/cluster/index.ts: connect() sees that the status has changed, and gives up).
 */
function connectWhenStuck(cluster: Cluster): void {
  const timer = setInterval(() => {
    if (cluster.status === 'close') cluster.connect().catch(() => {});
  }, stuckMs).unref();
  cluster.once('end', () => clearInterval(timer));
}
