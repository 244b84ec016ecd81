import { Redis } from 'ioredis';
import type { Logger } from './logger.ts';

/** A command that has no answer after so many ms fails. */
export const redisTimeoutMs = 250;

/**
 * A connection whose commands fail at once while Redis is away, and in time while it hangs; it comes back by itself.
 * Nothing is queued or sent twice.
 */
export function createRedis(url: string, logger: Logger): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: redisTimeoutMs,
    connectTimeout: 1_000,
    retryStrategy: (attempt) => Math.min(attempt * 100, 1_000),
  });
  let away = false;
  redis.on('error', (error) => {
    if (!away) logger.warn({ error }, 'Redis is away');
    away = true;
  });
  redis.on('ready', () => {
    if (away) logger.info('Redis is back');
    away = false;
  });
  return redis;
}
