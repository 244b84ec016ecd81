import {
  connectDatabase,
  createServiceFetch,
  eraseDeletedUsers,
  migrateService,
  type RetentionSteps,
  run,
  startRetention,
  tokensFromAuth,
} from '@content-platform/chassis';
import { createDevices } from './app.ts';
import { devicesConfig } from './config.ts';
import { createDeviceStore, deleteUnseenDevices, deleteEndedSessions } from './device-store.ts';
import { followEndedSessions, fetchEndedSessionsFrom } from './ended-sessions.ts';
import { createInternal } from './internal.ts';

await run('devices', devicesConfig, async (process) => {
  const { config, logger, metrics, onStop } = process;
  const { DATABASE_URL: url, AUTH_INTERNAL_URL: authInternalUrl, SERVICE_SECRET: secret } = config;
  await migrateService('devices', url, logger);
  const database = connectDatabase(process, url);
  const steps: RetentionSteps = (query) => ({
    devices: () => deleteUnseenDevices(query),
    'ended sessions': () => deleteEndedSessions(query),
  });
  onStop(startRetention(database.query, steps, logger));
  const devices = createDeviceStore(database);
  const fetchAsService = createServiceFetch(authInternalUrl, 'devices', secret);
  onStop(followEndedSessions(fetchEndedSessionsFrom(authInternalUrl, fetchAsService), devices, logger));
  eraseDeletedUsers(process, fetchAsService, {
    erase: devices.eraseUsers,
    query: database.query,
    schema: 'devices',
  });
  const tokens = tokensFromAuth(process);
  return {
    app: createDevices({ devices, tokens, logger, metrics }),
    internal: createInternal(devices, tokens, logger),
    checks: { postgres: { required: true, check: () => database.ping() }, tokens: tokens.check },
  };
});
