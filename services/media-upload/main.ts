import { createDatabase, migrate, run, tokensFromAuth } from '@content-platform/chassis';
import { createMediaUpload } from './app.ts';
import { readMediaUploadConfig } from './config.ts';

await run('media-upload', readMediaUploadConfig, async (process) => {
  const { config, logger, metrics, slowLog, onStop } = process;
  const { DATABASE_URL: url, SLOW_QUERY_MS: slowQueryMs } = config;
  await migrate({ url, schema: 'media', folder: new URL('migrations/', import.meta.url), logger });
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs });
  onStop(() => database.close());
  return {
    app: createMediaUpload({ database, tokens: tokensFromAuth(process), logger, metrics }),
    checks: { postgres: { required: true, check: () => database.ping() } },
  };
});
