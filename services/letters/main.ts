import {
  createAuditClient,
  connectDatabase,
  createIdempotency,
  createInternalEndpoints,
  createServiceFetch,
  eraseDeletedUsers,
  migrateService,
  run,
  serveExport,
  startRetention,
  type RetentionSteps,
  tokensFromAuth,
} from '@content-platform/chassis';
import { createLetters } from './app.ts';
import { lettersConfig } from './config.ts';
import { exportLetters } from './export-letters.ts';
import { createLetterStore, eraseLetters } from './letter-store.ts';
import { createFindUser } from './users.ts';

await run('letters', lettersConfig, async (process) => {
  const { config, logger, metrics, onStop } = process;
  const { DATABASE_URL: url, AUTH_INTERNAL_URL: authInternalUrl, SERVICE_SECRET: secret } = config;
  await migrateService('letters', url, logger);
  const database = connectDatabase(process, url);
  const steps: RetentionSteps = (query) => ({
    'idempotency keys': () => createIdempotency(query, 'letters').deleteExpired(),
  });
  onStop(startRetention(database.query, steps, logger));
  const tokens = tokensFromAuth(process);
  const fetchAsService = createServiceFetch(authInternalUrl, 'letters', secret);
  const addToAudit = createAuditClient(authInternalUrl, fetchAsService, logger);
  const findUser = createFindUser(authInternalUrl, fetchAsService);
  const { query } = database;
  eraseDeletedUsers(process, fetchAsService, {
    async erase(ids) {
      await eraseLetters(query, ids);
      await createIdempotency(query, 'letters').erase(ids);
    },
    query,
    schema: 'letters',
  });
  const internal = createInternalEndpoints(tokens, logger);
  serveExport(internal, exportLetters(createLetterStore(query)));
  return {
    internal: internal.router,
    app: createLetters({ database, addToAudit, findUser, tokens, logger, metrics }),
    checks: { postgres: { required: true, check: () => database.ping() }, tokens: tokens.check },
  };
});
