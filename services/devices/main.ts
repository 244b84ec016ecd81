import { createDatabase, migrate, run, startRetention, tokensFromAuth } from '@content-platform/chassis';
import { createDevices } from './app.ts';
import { readDevicesConfig } from './config.ts';
import { createDeviceStore, forgetDevices } from './device-store.ts';
import { createInternal } from './internal.ts';

await run('devices', readDevicesConfig, async (process) => {
  const { config, logger, metrics, slowLog, onStop } = process;
  const { DATABASE_URL: url, SLOW_QUERY_MS: slowQueryMs } = config;
  await migrate({ url, schema: 'devices', folder: new URL('migrations/', import.meta.url), logger });
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs });
  onStop(() => database.close());
  onStop(startRetention(database.query, (query) => ({ devices: () => forgetDevices(query) }), logger));
  const devices = createDeviceStore(database);
  const tokens = tokensFromAuth(process);
  return {
    app: createDevices({ devices, tokens, logger, metrics }),
    internal: createInternal(devices, logger),
    checks: { postgres: { required: true, check: () => database.ping() }, tokens: tokens.check },
  };
});
