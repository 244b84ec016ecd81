import { createDatabase, migrate, run, tokensFromAuth } from '@content-platform/chassis';
import { createLetters } from './app.ts';
import { readLettersConfig } from './config.ts';

await run('letters', readLettersConfig, async (process) => {
  const { config, logger, metrics, slowLog, onStop } = process;
  const { DATABASE_URL: url, SLOW_QUERY_MS: slowQueryMs } = config;
  await migrate({ url, schema: 'letters', folder: new URL('migrations/', import.meta.url), logger });
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs });
  onStop(() => database.close());
  return {
    app: createLetters({ database, tokens: tokensFromAuth(process), logger, metrics }),
    checks: { postgres: { required: true, check: () => database.ping() } },
  };
});
