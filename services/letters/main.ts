import {
  createAuditClient,
  createDatabase,
  createIdempotency,
  createServiceFetch,
  run,
  startRetention,
  type RetentionSteps,
  tokensFromAuth,
} from '@content-platform/chassis';
import { createLetters } from './app.ts';
import { readLettersConfig } from './config.ts';
import { migrateLetters } from './letters.ts';

await run('letters', readLettersConfig, async (process) => {
  const { config, logger, metrics, slowLog, onStop } = process;
  const { DATABASE_URL: url, SLOW_QUERY_MS: slowQueryMs } = config;
  await migrateLetters(url, logger);
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs });
  onStop(() => database.close());
  const steps: RetentionSteps = (query) => ({
    'idempotency keys': () => createIdempotency(query, 'letters').deleteExpired(),
  });
  onStop(startRetention(database.query, steps, logger));
  const tokens = tokensFromAuth(process);
  const { AUTH_INTERNAL_URL: authUrl, SERVICE_SECRET: secret } = config;
  const addToAudit = createAuditClient(authUrl, createServiceFetch(authUrl, 'letters', secret), logger);
  return {
    app: createLetters({ database, addToAudit, tokens, logger, metrics }),
    checks: { postgres: { required: true, check: () => database.ping() }, tokens: tokens.check },
  };
});
