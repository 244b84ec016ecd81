import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Kafka, logLevel } from 'kafkajs';
import { createLogger, createMetrics } from '@content-platform/chassis';
import type { Model } from '@content-platform/contract';
import { until } from '../../../test/support/wait.ts';
import { createCacheMetrics } from '../metrics.ts';
import { createTestKafka, type TestKafka } from '../testing/kafka.ts';
import type { TestService } from '../testing/service.ts';
import { createBroker } from './broker.ts';
import { createQueue } from './queue.ts';
import { read, startWorld, type World } from '../testing/world.ts';

let world: World;
let kafka: TestKafka;
let service: TestService;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());
beforeEach(async () => {
  kafka = await createTestKafka();
  service = await world.service({ kafka });
  await until('the consumer is there', () => service.check('kafka'));
  await world.sql('TRUNCATE content.failed_job, content.record');
  await world.sql(
    `INSERT INTO content.record SELECT model, id, 'Old', '{}'
     FROM unnest(ARRAY['webform', 'pathway']) AS model, generate_series(1, 3) AS id`,
  );
});
afterEach(async () => {
  await service.stop();
  await kafka.close();
});

async function warm(model: Model, id: number): Promise<void> {
  await until('it is cached', async () => (await read(service, model, id)).cache === 'hit');
}
const cached = async (model: Model, id: number) => (await read(service, model, id)).cache === 'hit';
const failedJobs = () =>
  world.sql<{
    class: string;
    key: Buffer | null;
    value: Buffer | null;
    offset: string;
    model: string | null;
  }>('SELECT * FROM content.failed_job ORDER BY "partition", "offset"');

test('creates the topic with 8 partitions and 7 days of retention', async () => {
  const { topics } = await kafka.admin.fetchTopicMetadata({ topics: [kafka.topic] });
  expect(topics[0]!.partitions).toHaveLength(8);
  const { resources } = await kafka.admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: 2, name: kafka.topic, configNames: ['retention.ms'] }],
  });
  expect(resources[0]!.configEntries).toMatchObject([
    { configName: 'retention.ms', configValue: '604800000' },
  ]);
});

test('clears a record and a model before the offset moves', async () => {
  for (const id of [1, 2]) await warm('webform', id);
  await warm('pathway', 1);
  await kafka.send({ value: { model: 'webform', id: 1, occurred_at: new Date().toISOString() } });
  await kafka.consumed();
  expect([await cached('webform', 1), await cached('webform', 2)]).toEqual([false, true]);
  await kafka.send({ value: { pattern: 'webform:*' }, partition: 5 });
  await kafka.consumed();
  expect([await cached('webform', 2), await cached('pathway', 1)]).toEqual([false, true]);
  expect(await service.metric('invalidation_delay_seconds_count{source="kafka"}')).toBe(2);
  expect(await service.metric('invalidation_delay_seconds_sum{source="kafka"}')).toBeLessThan(60);
  await until('the queue is measured', async () => (await service.metric('invalidation_queue_length')) === 0);
  expect(await service.metric('invalidation_queue_measured_timestamp_seconds')).toBeGreaterThan(1e9);
});

test('stores any unprocessable bytes unchanged as a failed job, and clears the events after them', async () => {
  await warm('webform', 1);
  const deepNesting = Buffer.alloc(900_000, '[');
  const poison: [string, Buffer | null, Buffer | null][] = [
    ['not_json', null, Buffer.from('not JSON')],
    ['not_json', Buffer.from([0]), Buffer.from([0])],
    ['not_json', Buffer.from([0xff, 0, 0xfe]), Buffer.from([0xff])],
    ['not_json', null, Buffer.from('"\0 a string with a zero byte in it')],
    ['not_json', null, Buffer.from(`{"model": ${'🎈'.repeat(200)}`)],
    ['empty', Buffer.from('webform:1'), null],
    ['empty', null, Buffer.alloc(0)],
    ['too_large', null, Buffer.alloc(1_000_000, 'x')],
    ['too_large', null, deepNesting],
    ['unknown_model', Buffer.from('letter:1'), Buffer.from('{"model":"letter","id":1}')],
    ['invalid_event', null, Buffer.from('{"model":"webform","id":"1"}')],
  ];
  for (const [, key, value] of poison) await kafka.send({ key, value });
  const future = new Date(Date.now() + 86_400_000).toISOString();
  await kafka.send({ key: 'pathway:9', value: { model: 'webform', id: 1, occurred_at: future } });
  await kafka.consumed();

  const jobs = await failedJobs();
  expect(jobs.map(({ class: name }) => name)).toEqual(poison.map(([name]) => name));
  for (const [index, [, key, value]] of poison.entries()) {
    const job = jobs[index]!;
    expect(job.key === key || job.key!.equals(key!)).toBe(true);
    expect(job.value === value || job.value!.equals(value!)).toBe(true);
  }
  expect(jobs.at(-1)!.model).toBe('webform');
  // Only the value counts, not a wrong key or a future time.
  expect(await cached('webform', 1)).toBe(false);
  expect(await service.metric('failed_jobs_total{class="too_large"}')).toBe(2);
  expect(await service.metric('failed_jobs_open')).toBe(poison.length);
  expect(await service.check('kafka')).toBe(true);
});

test('an aborted transaction clears nothing, and leaves nothing in the queue', async () => {
  await warm('webform', 1);
  const producer = kafka.kafka.producer({ transactionalId: kafka.topic, maxInFlightRequests: 1 });
  await producer.connect();
  const transaction = await producer.transaction();
  const value = JSON.stringify({ model: 'webform', id: 1 });
  await transaction.send({ topic: kafka.topic, messages: [{ partition: 0, value }] });
  await transaction.abort();
  await producer.disconnect();
  await until('it is passed over', async () => {
    const { committed, high } = (await kafka.offsets()).find(({ partition }) => partition === 0)!;
    return high > 0 && committed === high;
  });
  expect(await cached('webform', 1)).toBe(true);
  await kafka.send({ value: { model: 'webform', id: 1 } });
  await kafka.consumed();
  expect(await cached('webform', 1)).toBe(false);
});

test('limits the measured delay to the retention time', async () => {
  await kafka.send({ value: { model: 'webform', id: 1, occurred_at: '1970-01-01T00:00:00Z' } });
  await kafka.consumed();
  const week = 7 * 24 * 60 * 60;
  expect(await service.metric('invalidation_delay_seconds_sum{source="kafka"}')).toBe(week);
});

test('stores a redelivered poison event once, and one at the same offset of a recreated topic again', async () => {
  const poison = { value: 'poison' };
  await kafka.send(poison);
  await kafka.consumed();
  await service.stop();
  await kafka.admin.setOffsets({
    groupId: kafka.group,
    topic: kafka.topic,
    partitions: [{ partition: 0, offset: '0' }],
  });
  service = await world.service({ kafka });
  await kafka.consumed();
  expect(await failedJobs()).toMatchObject([{ class: 'not_json', offset: '0' }]);

  await service.stop();
  await kafka.deleteTopic();
  await kafka.makeTopic();
  await kafka.send(poison);
  service = await world.service({ kafka });
  await kafka.consumed();
  const found = (await failedJobs()).filter(({ class: name }) => name === 'not_json');
  expect(found).toMatchObject([{ offset: '0' }, { offset: '0' }]);
});

test('measures the queue; its length is unknown while Kafka does not answer', async () => {
  await service.stop();
  const metrics = createCacheMetrics(createMetrics('content-cache'));
  const logger = createLogger('content-cache', 'silent');
  async function measured(client: Kafka, expected: number | undefined): Promise<void> {
    const broker = createBroker(client, kafka.topic, kafka.group);
    const queue = createQueue({ broker, metrics, onOffsets: () => undefined, logger, intervalMs: 100 });
    queue.start();
    await until(`it is ${expected}`, async () => (await queue.next()) === expected);
    queue.stop();
    expect(await queue.next()).toBeUndefined();
    await broker.close();
  }
  await measured(kafka.kafka, 0);
  await kafka.send({ value: { model: 'webform', id: 1 } });
  await measured(kafka.kafka, 1);
  const retry = { retries: 0 };
  metrics.queueMeasured.set(0);
  await measured(new Kafka({ brokers: ['127.0.0.1:1'], logLevel: logLevel.NOTHING, retry }), undefined);
  // Otherwise no alert would fire for a Kafka that was never reachable.
  const { values } = await metrics.queueMeasured.get();
  expect(values[0]!.value).toBeGreaterThan(Date.now() / 1_000 - 300);
});
