import { afterEach, beforeAll, beforeEach } from '@jest/globals';
import { models, type Model } from '@content-platform/contract';
import { until } from '../../../test/support/wait.ts';
import { createTestKafka, type TestKafka } from './kafka.ts';
import type { TestService, TestServiceOptions } from './service.ts';
import { read, useTestStores } from './test-stores.ts';

const ids = [1, 2, 3, 4, 5];

interface FailedJobRow {
  class: string;
  key: Buffer | null;
  value: Buffer | null;
  offset: string;
  model: string | null;
}

/** Creates a world with records 1 to 5 of each model for a test file, and a separate topic name for each test. */
export function useEvents() {
  const world = useTestStores();
  let kafka: TestKafka;
  beforeAll(async () => {
    const insert = `INSERT INTO content.record
      SELECT model, id, 'One', '{}' FROM unnest($1::text[]) AS model, unnest($2::bigint[]) AS id`;
    await world.sql(insert, models, ids);
  });
  beforeEach(async () => {
    kafka = await createTestKafka();
    await world.sql('TRUNCATE content.failed_job');
    await world.redis.admin.flushall();
  });
  afterEach(async () => {
    await world.stopServices();
    await kafka.close();
  });

  return {
    world,
    get kafka() {
      return kafka;
    },
    /** Starts a service that consumes the topic, which it creates if it is missing. */
    async startConsumer(options: Partial<TestServiceOptions> = {}): Promise<TestService> {
      const service = await world.service({ kafka, ...options });
      await until('the consumer is in its group', () => service.check('kafka'));
      await kafka.consumed();
      return service;
    },
    /** Caches records 1 to 5. */
    async warm(service: TestService, model: Model = 'webform'): Promise<void> {
      for (const id of ids)
        await until('it is cached', async () => (await read(service, model, id)).cache === 'hit');
    },
    /** Announces records 1 to 5, each on another partition. */
    announce: () => kafka.send(...ids.map((id) => ({ value: { model: 'webform', id }, partition: id }))),
    /** Returns the keys of cached records, by default of the model webform. */
    cachedKeys: async (pattern = 'webform:*') => (await world.redis.admin.keys(pattern)).toSorted(),
    failedJobs: () =>
      world.sql<FailedJobRow>('SELECT * FROM content.failed_job ORDER BY "partition", "offset"'),
    /** Returns the number of events that are not committed. */
    lag: async () => (await kafka.offsets()).reduce((sum, { committed, high }) => sum + high - committed, 0),
  };
}
