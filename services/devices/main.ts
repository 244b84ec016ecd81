import {
  createDatabase,
  createServiceFetch,
  migrate,
  type RetentionSteps,
  run,
  startRetention,
  tokensFromAuth,
} from '@content-platform/chassis';
import { createDevices } from './app.ts';
import { readDevicesConfig } from './config.ts';
import { createDeviceStore, deleteUnseenDevices, deleteEndedSessions } from './device-store.ts';
import { followEndedSessions, fetchEndedSessionsFrom } from './ended-sessions.ts';
import { createInternal } from './internal.ts';

await run('devices', readDevicesConfig, async (process) => {
  const { config, logger, metrics, slowLog, onStop } = process;
  const { DATABASE_URL: url, SLOW_QUERY_MS: slowQueryMs } = config;
  await migrate({ url, schema: 'devices', folder: new URL('migrations/', import.meta.url), logger });
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs });
  onStop(() => database.close());
  const steps: RetentionSteps = (query) => ({
    devices: () => deleteUnseenDevices(query),
    'ended sessions': () => deleteEndedSessions(query),
  });
  onStop(startRetention(database.query, steps, logger));
  const devices = createDeviceStore(database);
  const { AUTH_INTERNAL_URL: authUrl, SERVICE_SECRET: secret } = config;
  const fetchEnded = fetchEndedSessionsFrom(authUrl, createServiceFetch(authUrl, 'devices', secret));
  onStop(followEndedSessions(fetchEnded, devices, logger));
  const tokens = tokensFromAuth(process);
  return {
    app: createDevices({ devices, tokens, logger, metrics }),
    internal: createInternal(devices, tokens, logger),
    checks: { postgres: { required: true, check: () => database.ping() }, tokens: tokens.check },
  };
});
