// What the tests of this service share.
import {
  type Database,
  createDatabase,
  createLogger,
  createMetrics,
  createSlowLog,
  migrate,
} from '@content-platform/chassis';
import { createTestDatabase } from '../../test/support/test-database.ts';
import { until } from '../../test/support/wait.ts';
import { createDeviceStore } from './device-store.ts';

/** The store on a database of its own, with what is logged. */
export async function openDevices() {
  const testDatabase = await createTestDatabase();
  const { url } = testDatabase;
  const log: string[] = [];
  const logger = createLogger('devices', 'debug', { write: (line) => void log.push(line) });
  const metrics = createMetrics('devices');
  await migrate({ url, schema: 'devices', folder: new URL('migrations/', import.meta.url), logger });
  const slowLog = createSlowLog(undefined, metrics, logger);
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs: 60_000 });
  return {
    database,
    devices: createDeviceStore(database),
    logger,
    log,
    sql: <Row extends object>(text: string, values: unknown[] = []) =>
      database.query<Row & Record<string, unknown>>('test', text, values).then(({ rows }) => rows),
    async close() {
      await database.close();
      await testDatabase.drop();
    },
  };
}
export type TestDevices = Awaited<ReturnType<typeof openDevices>>;

/** Does `work` in a transaction that stays open until what is returned is called: others wait for its locks. */
export async function holdOpen(
  { transaction }: Database,
  work: (query: Database['query']) => Promise<unknown>,
): Promise<() => Promise<void>> {
  const done = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const running = transaction(async (query) => {
    await work(query);
    done.resolve();
    await end.promise;
  });
  await Promise.race([done.promise, running]);
  return () => {
    end.resolve();
    return running;
  };
}

/** Waits until somebody waits for a lock in the database. */
export async function untilBlocked({ sql }: TestDevices): Promise<void> {
  const text = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
  await until('somebody waits for a lock', async () => (await sql(text)).length > 0);
}
