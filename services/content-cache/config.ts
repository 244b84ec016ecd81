import { z } from 'zod';
import { models, portOf } from '@content-platform/contract';
import {
  commonConfig,
  databaseUrl,
  integer,
  list,
  redisUrl,
  serviceSecret,
  tokenConfig,
} from '@content-platform/chassis';
import { kafkaConfig } from './kafka.ts';

const aDay = 86_400;
const modelNames = `a list of ${models.join(', ')}, separated by commas`;
/** Models, or `none`: an empty setting counts as unset. */
const modelList = list()
  .transform((names) => (names.join() === 'none' ? [] : names))
  .pipe(z.array(z.enum(models, modelNames)));

export const contentCacheConfig = {
  ...commonConfig(portOf('content-cache')),
  // Must be the primary: a replica may lack a change whose clear was already sent.
  DATABASE_URL: databaseUrl,
  REDIS_URL: redisUrl,
  ...kafkaConfig,
  ...tokenConfig,
  SERVICE_SECRET: serviceSecret,
  CONTENT_UNLISTED_MODELS: modelList
    .default(['accesscode'])
    .describe(
      `Models that only tokens with the scope \`content:list\` can list, separated by commas: ${models.join(', ')}; \`none\`: none`,
    ),
  CONTENT_RESTRICTED_MODELS: modelList
    .default([])
    .describe(
      `Models that only tokens with the scope \`content:restricted\` can read, separated by commas: ${models.join(', ')}; empty: none`,
    ),
  CACHE_TTL: integer(1, aDay)
    .default(300)
    .describe('Time that a record is cached, in s, 1 to 86400; varied by 10 %'),
  CACHE_NEGATIVE_TTL: integer(1, aDay)
    .default(30)
    .describe('Time that the absence of a record is cached, in s, 1 to 86400; varied by 10 %'),
  CACHE_UNMANAGED_KEYS: z
    .enum(['sweep', 'none'], 'sweep or none')
    .default('sweep')
    .describe(
      '`sweep`: a clear also deletes keys `<model>:<id>:…` that other programs wrote; `none`: no other program writes such keys',
    ),
  CACHE_MIN_REPLICAS: integer(0, 10)
    .default(0)
    .describe(
      'Number of replicas that a Redis primary must have to be used, 0 to 10; the same as its `min-replicas-to-write`',
    ),
  CACHE_REPLICA_MAX_LAG: integer(1, 60)
    .default(2)
    .describe(
      'Time since the last contact after which a replica no longer counts, in s, 1 to 60; at least 2 s less than a failover takes',
    ),
};
