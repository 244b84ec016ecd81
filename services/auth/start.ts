import {
  createDatabase,
  createRedis,
  migrate,
  type Process,
  type Running,
  startUpkeep,
  watchRevocations,
} from '@content-platform/chassis';
import { createAuth } from './app.ts';
import type { readAuthConfig } from './config.ts';
import { guessBackoff } from './guessing/guesses.ts';
import { createInternal } from './sessions/internal.ts';
import { createPushDevices } from './sessions/push-devices.ts';
import { createSharedCounts } from './guessing/redis-counts.ts';
import { revocationsAfter } from './sessions/revocations.ts';
import { loadSecret } from './keys/stored-secret.ts';
import { loadSigningKeys } from './keys/signing-keys.ts';
import { upkeep } from './upkeep.ts';

type Config = ReturnType<typeof readAuthConfig>;

/**
 * Brings up what the service stands on, and builds its app. Redis may come later; the schema must be there. Throws
 * ConfigError when AUTH_KEY_SECRET is not the one that the keys were sealed with.
 */
export async function startAuthService({
  config,
  logger,
  metrics,
  slowLog,
  onStop,
}: Process<Config>): Promise<Running> {
  const { DATABASE_URL: url, SLOW_QUERY_MS: slowQueryMs, AUTH_KEY_SECRET: keySecret } = config;
  await migrate({ url, schema: 'auth', folder: new URL('migrations/', import.meta.url), logger });
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs });
  onStop(() => database.close());
  const keys = await loadSigningKeys(database, keySecret, logger);
  onStop(() => keys.close());
  const refreshSecret = await loadSecret(database, 'refresh_token', keySecret);
  // Connections of its own: the others learn of a logout in time, however many are logging in.
  const feed = createDatabase({ url, logger, metrics, slowLog, slowQueryMs, maxConnections: 2 });
  onStop(() => feed.close());
  const revocations = watchRevocations((after) => revocationsAfter(feed.query, after), logger, metrics);
  onStop(() => revocations.close());
  const redis = createRedis(config.REDIS_URL, logger);
  onStop(() => redis.disconnect());
  const failures = createSharedCounts(redis, logger, guessBackoff);
  onStop(startUpkeep(database.query, upkeep, logger));
  const { PUBLIC_URL: issuer, PASSWORD_MIN_LENGTH: passwordMinLength, identity } = config;
  return {
    app: createAuth({
      issuer,
      database,
      keys,
      refreshSecret,
      revocations,
      failures,
      passwordMinLength,
      identity,
      pushDevices: createPushDevices(config.DEVICES_INTERNAL_URL, logger),
      logger,
      metrics,
    }),
    internal: createInternal(feed.query),
    checks: {
      postgres: { required: true, check: () => database.ping() },
      // Without it guesses are counted in this process.
      redis: { required: false, check: () => redis.ping() },
    },
  };
}
