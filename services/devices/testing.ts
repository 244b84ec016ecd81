// What the tests of this service share.
import {
  createDatabase,
  createLogger,
  createMetrics,
  createSlowLog,
  migrate,
} from '@content-platform/chassis';
import { createTestDatabase } from '../../test/support/test-database.ts';
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
