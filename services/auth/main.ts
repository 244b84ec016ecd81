import { createDatabase, migrate, run } from '@content-platform/chassis';
import { createAuth } from './app.ts';
import { readAuthConfig } from './config.ts';
import { loadSigningKeys } from './signing-keys.ts';

await run('auth', readAuthConfig, async ({ config, logger, metrics, slowLog, onStop }) => {
  const { DATABASE_URL: url, SLOW_QUERY_MS: slowQueryMs } = config;
  await migrate({ url, schema: 'auth', folder: new URL('migrations/', import.meta.url), logger });
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs });
  onStop(() => database.close());
  const keys = await loadSigningKeys(database, config.AUTH_KEY_SECRET);
  return {
    app: createAuth({ issuer: config.PUBLIC_URL, database, keys, logger, metrics }),
    checks: { postgres: { required: true, check: () => database.ping() } },
  };
});
