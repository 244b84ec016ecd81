import { createDatabase, migrate, run, tokensFromAuth } from '@content-platform/chassis';
import { createDevices } from './app.ts';
import { readDevicesConfig } from './config.ts';

await run('devices', readDevicesConfig, async (process) => {
  const { config, logger, metrics, slowLog, onStop } = process;
  const { DATABASE_URL: url, SLOW_QUERY_MS: slowQueryMs } = config;
  await migrate({ url, schema: 'devices', folder: new URL('migrations/', import.meta.url), logger });
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs });
  onStop(() => database.close());
  return {
    app: createDevices({ database, tokens: tokensFromAuth(process), logger, metrics }),
    checks: { postgres: { required: true, check: () => database.ping() } },
  };
});
