import { createTestDatabase } from '../../../test/support/test-database.ts';
import { createLogger, type Logger } from '../logger.ts';
import { createMetrics } from '../metrics.ts';
import { createDatabase } from '../postgres.ts';

/** The parts that every service has, on a new database with its schema. `log` grows by each line at level debug. */
export async function openTestService(
  name: string,
  migrate: (url: string, logger: Logger) => Promise<unknown>,
) {
  const testDatabase = await createTestDatabase();
  const { url } = testDatabase;
  const log: string[] = [];
  const logger = createLogger(name, 'debug', { write: (line) => void log.push(line) });
  await migrate(url, logger);
  const metrics = createMetrics(name);
  const database = createDatabase({ url, logger, metrics });
  return {
    databaseUrl: url,
    database,
    logger,
    log,
    metrics,
    async close(): Promise<void> {
      await database.close();
      await testDatabase.drop();
    },
  };
}
