import type { ServiceName } from '@content-platform/contract/services';
import { createPreparedDatabase } from '../../../test/support/test-database.ts';
import { createLogger, type Logger } from '../logger.ts';
import { createMetrics } from '../metrics.ts';
import { createDatabase } from '../postgres.ts';
import { migrateService } from '../prepare-databases.ts';

/**
 * The parts that every service has, on a copy of a database that `prepare` has filled once for all test files with this
 * `template`; by default with the schema of the service. `log` grows by each line at level debug.
 */
export async function openTestService(
  name: ServiceName,
  prepare = (url: string, logger: Logger): Promise<unknown> => migrateService(name, url, logger),
  template: string = name,
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
    /** Runs a statement as the owner of the database, and returns its rows. */
    sql: async <Row extends object = Record<string, unknown>>(text: string, ...values: unknown[]) =>
      (await database.query<Row>('test', text, values)).rows,
    async close(): Promise<void> {
      await database.close();
      await testDatabase.drop();
    },
  };
}
