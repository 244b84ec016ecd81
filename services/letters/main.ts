import {
  createDatabase,
  createIdempotency,
  run,
  startRetention,
  tokensFromAuth,
} from '@content-platform/chassis';
import { createLetters } from './app.ts';
import { readLettersConfig } from './config.ts';
import { migrateLetters } from './schema.ts';

await run('letters', readLettersConfig, async (process) => {
  const { config, logger, metrics, slowLog, onStop } = process;
  const { DATABASE_URL: url, SLOW_QUERY_MS: slowQueryMs } = config;
  await migrateLetters(url, logger);
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs });
  onStop(() => database.close());
  const { query } = database;
  const steps = (ask: typeof query) => ({
    'idempotency keys': () => createIdempotency(ask, 'letters').forget(),
  });
  onStop(startRetention(query, steps, logger));
  const tokens = tokensFromAuth(process);
  return {
    app: createLetters({ database, tokens, logger, metrics }),
    checks: { postgres: { required: true, check: () => database.ping() }, tokens: tokens.check },
  };
});
