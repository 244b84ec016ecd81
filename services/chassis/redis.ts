import { Cluster, Redis } from 'ioredis';
import { isTraced } from './context.ts';
import type { Logger } from './logger.ts';
import { parseRedisUrl, sentinelLogin } from './redis-address.ts';

/** A command without a reply fails after this time. */
export const redisTimeoutMs = 250;

/** A client of one server or of a cluster; both have the same commands. */
export type RedisClient = Redis | Cluster;

const retryStrategy = (attempt: number) => Math.min(attempt * 100, 1_000);

/**
 * Connects to Redis at `url` (the forms of parseRedisUrl) and reconnects. Commands fail at once while Redis is
 * unavailable, and after `redisTimeoutMs` while it hangs. In a cluster a command may use keys of one slot only.
 */
export function createRedis(url: string, logger: Logger): RedisClient {
  const redis = open(url);
  let isAvailable = true;
  redis.on('error', (error: unknown) => {
    if (isAvailable) logger.warn({ error }, 'Redis unreachable');
    isAvailable = false;
  });
  redis.on('ready', () => {
    if (!isAvailable) logger.info('Redis reachable again');
    isAvailable = true;
  });
  return redis;
}

function open(url: string): RedisClient {
  const address = parseRedisUrl(url);
  const perNode = {
    autoResendUnfulfilledCommands: false,
    // The server is a replica now: the name, or the sentinels, may lead to the new primary.
    reconnectOnError: ({ message }: Error) => message.startsWith('READONLY'),
    maxRetriesPerRequest: 0,
    commandTimeout: redisTimeoutMs,
    connectTimeout: 1_000,
    // After a failover, the connection may lead to a server that is gone.
    socketTimeout: 3_000,
    // A connection that does not end by itself would keep the process alive for 2 s.
    disconnectTimeout: redisTimeoutMs,
  };
  if (address.form === 'cluster') {
    const cluster = new Cluster(address.nodes, {
      enableOfflineQueue: false,
      clusterRetryStrategy: retryStrategy,
      clusterNodeRetryStrategy: retryStrategy,
      // Retries only a command that a node redirects (MOVED), at the correct node.
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
      maxRedirections: 3,
      slotsRefreshInterval: 2_000,
      // TLS certificates hold names; ioredis would connect to the IP addresses of `nodes`.
      dnsLookup: address.access.tls ? (name, found) => found(null, name) : undefined,
      redisOptions: { ...perNode, ...address.access },
    });
    connectWhenStuck(cluster);
    return cluster;
  }
  const settings = {
    ...perNode,
    enableOfflineQueue: false,
    retryStrategy,
    // Sends the commands of one event-loop turn in one write. In a cluster, commands would then wait instead of failing.
    // In a traced process, their spans would all be in the trace of the first command.
    enableAutoPipelining: !isTraced(),
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

/** Works around ioredis 6.0.0: a cluster client stays in `close` if its last connection ends while it resolves names. */
function connectWhenStuck(cluster: Cluster): void {
  const timer = setInterval(() => {
    if (cluster.status === 'close') cluster.connect().catch(() => {});
  }, 2_000).unref();
  cluster.once('end', () => clearInterval(timer));
}
