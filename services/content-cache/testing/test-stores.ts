import { useStarted } from '../../../test/support/use-started.ts';
import pg from 'pg';
import { createLogger, migrate, runRetention, type Database } from '@content-platform/chassis';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { createPreparedDatabase } from '../../../test/support/test-database.ts';
import { startRedis } from '../../../test/support/redis-server.ts';
import { until } from '../../../test/support/wait.ts';
import { retention } from '../start.ts';
import { startTestService, type TestService, type TestServiceOptions } from './service.ts';

export type TestStores = Awaited<ReturnType<typeof startTestStores>>;

/** Starts a Redis and a migrated database for one test file, and any number of services on them. */
export async function startTestStores() {
  const logger = createLogger('content-cache', 'silent');
  const folder = new URL('../migrations/', import.meta.url);
  const prepare = (url: string) => migrate({ url, schema: 'content', folder, logger });
  const [database, redis] = await Promise.all([
    createPreparedDatabase('prepared_content', prepare),
    startRedis(),
  ]);
  const owner = new pg.Pool({ connectionString: database.url, max: 2 });
  owner.on('error', () => undefined);
  // As in a cache that was emptied when the log of changes began.
  await owner.query('UPDATE content.change_epoch SET cleared = true');
  const services = new Set<TestService>();
  const stopServices = () => Promise.all([...services].map((service) => service.stop()));

  const query = ((_, text, values = []) => owner.query(text, [...values])) as Database['query'];

  return {
    databaseUrl: database.url,
    redis,
    /** For tests of parts without a service. */
    query,
    runRetention: () => runRetention(query, retention, logger, new AbortController().signal),
    /** Runs a query as the database's owner. */
    async sql<Row extends pg.QueryResultRow>(text: string, ...values: unknown[]): Promise<Row[]> {
      return (await owner.query<Row>(text, values)).rows;
    },
    async service(options: Partial<TestServiceOptions> = {}): Promise<TestService> {
      const service = await startTestService({ databaseUrl: database.url, redisUrl: redis.url, ...options });
      const { stop } = service;
      service.stop = async () => {
        if (services.delete(service)) await stop();
      };
      services.add(service);
      await until('it can check tokens', () => service.check('tokens'));
      return service;
    },
    stopServices,
    async close(): Promise<void> {
      await stopServices();
      await redis.stop();
      await owner.end();
      await database.drop();
    },
  };
}

/** Starts the stores before the tests of a file, and closes them afterwards. Only tests and hooks may use the result. */
export function useTestStores(): TestStores {
  return useStarted(startTestStores);
}

/** Reads a record through the service. Returns the reply and the cache's outcome. */
export async function read(
  service: TestService,
  model: contract.Model,
  id: number,
  token = service.userToken(),
) {
  const options = { params: { model, id }, token };
  const { status, headers, body, error } = await call(service.url, contract.readContent, options);
  return { status, body, error, headers, cache: headers.get('x-cache'), etag: headers.get('etag') };
}
