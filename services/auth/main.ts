import { createDatabase, createRedis, migrate, run, watchRevocations } from '@content-platform/chassis';
import { createAuth } from './app.ts';
import { readAuthConfig } from './config.ts';
import { guessBackoff } from './guesses.ts';
import { createInternal } from './internal.ts';
import { createSharedCounts } from './redis-counts.ts';
import { revocationsAfter } from './revocations.ts';
import { loadSecret } from './secrets.ts';
import { loadSigningKeys } from './signing-keys.ts';
import { startUpkeep } from './upkeep.ts';

await run('auth', readAuthConfig, async ({ config, logger, metrics, slowLog, onStop }) => {
  const { DATABASE_URL: url, SLOW_QUERY_MS: slowQueryMs, AUTH_KEY_SECRET: keySecret } = config;
  await migrate({ url, schema: 'auth', folder: new URL('migrations/', import.meta.url), logger });
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs });
  onStop(() => database.close());
  const keys = await loadSigningKeys(database, keySecret, logger);
  onStop(() => keys.close());
  const refreshSecret = await loadSecret(database, 'refresh_token', keySecret);
  const revocations = watchRevocations((after) => revocationsAfter(database.query, after), logger, metrics);
  onStop(() => revocations.close());
  const redis = createRedis(config.REDIS_URL, logger);
  onStop(() => redis.disconnect());
  const failures = createSharedCounts(redis, logger, guessBackoff);
  onStop(startUpkeep(database.query, logger));
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
      logger,
      metrics,
    }),
    internal: createInternal(database.query),
    checks: {
      postgres: { required: true, check: () => database.ping() },
      // Without it guesses are counted in this process.
      redis: { required: false, check: () => redis.ping() },
    },
  };
});
