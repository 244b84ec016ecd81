import { createPreparedDatabase } from '../../../test/support/test-database.ts';
import { createLogger, type Logger } from '../logger.ts';
import { createMetrics } from '../metrics.ts';
import { createDatabase } from '../postgres.ts';

/**
 * The parts that every service has, on a copy of a database that `prepare` has filled once for all test files with this
 * `template`. `log` grows by each line at level debug.
 */
export async function openTestService(
  name: string,
  prepare: (url: string, logger: Logger) => Promise<unknown>,
  template = name,
) {
  const log: string[] = [];
  const logger = createLogger(name, 'debug', { write: (line) => void log.push(line) });
  const testDatabase = await createPreparedDatabase(`prepared_${template.replace('-', '_')}`, (empty) =>
    prepare(empty, logger),
  );
  const { url } = testDatabase;
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
