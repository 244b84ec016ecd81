import { z } from 'zod';
import { portOf } from '@content-platform/contract';
import {
  commonConfig,
  databaseUrl,
  integer,
  readConfig,
  redisUrl,
  tokenConfig,
} from '@content-platform/chassis';
import { kafkaConfig } from './kafka.ts';

const aDay = 86_400;

export const contentCacheConfig = {
  ...commonConfig(portOf('content-cache')),
  // Never a replica, which may lack a change whose clear was already sent.
  DATABASE_URL: databaseUrl,
  REDIS_URL: redisUrl,
  ...kafkaConfig,
  ...tokenConfig,
  CACHE_TTL: integer(1, aDay).default(300).describe('How long a record is cached, in s, give or take 10 %'),
  CACHE_NEGATIVE_TTL: integer(1, aDay)
    .default(30)
    .describe('How long it is cached that a record does not exist, in s, give or take 10 %'),
  CACHE_UNMANAGED_KEYS: z
    .enum(['sweep', 'none'], 'sweep or none')
    .default('sweep')
    .describe('sweep: a clear also finds keys `<model>:<id>:…` of other programs; none: there are none'),
  CACHE_MIN_REPLICAS: integer(0, 10)
    .default(0)
    .describe(
      'How many replicas must follow a Redis primary, or the cache does not use it: as its `min-replicas-to-write`',
    ),
  CACHE_REPLICA_MAX_LAG: integer(1, 60)
    .default(2)
    .describe(
      'How long ago a replica may have been heard of, in s: 2 s less than a failover takes, or shorter',
    ),
};

/** Throws ConfigError. */
export function readContentCacheConfig() {
  return readConfig(contentCacheConfig, process.env);
}
