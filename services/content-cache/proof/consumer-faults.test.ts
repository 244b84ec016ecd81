// Faults of the consumer that only another program can cause.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import {
  AssignerProtocol,
  CompressionCodecs,
  CompressionTypes,
  type Consumer,
  type PartitionAssigner,
} from 'kafkajs';
import { until } from '../../../test/support/wait.ts';
import { createTestKafka, type TestKafka } from '../testing/kafka.ts';
import type { TestService } from '../testing/service.ts';
import { read, startWorld, type World } from '../testing/world.ts';

const sessionTimeoutMs = 5_000;

let world: World;
let kafka: TestKafka;
let service: TestService;
beforeAll(async () => {
  world = await startWorld();
  await (await world.service()).stop();
  await world.sql(
    `INSERT INTO content.record SELECT 'webform', id, 'One', '{}' FROM generate_series(1, 5) AS id`,
  );
});
beforeEach(async () => {
  kafka = await createTestKafka();
  await world.sql('TRUNCATE content.failed_job');
  await world.redis.admin.flushall();
});
afterEach(async () => {
  await service.stop();
  await kafka.close();
});
afterAll(() => world.close());

/** A consumer of another program in our group: kafkajs gives up when it meets one. */
const foreign: PartitionAssigner = () => ({
  name: 'foreign',
  version: 0,
  assign: () => Promise.resolve([]),
  protocol: ({ topics }) => ({
    name: 'foreign',
    metadata: AssignerProtocol.MemberMetadata.encode({ version: 0, topics, userData: Buffer.alloc(0) }),
  }),
});

async function intrude(topic: string): Promise<Consumer> {
  const intruder = kafka.kafka.consumer({
    groupId: kafka.group,
    partitionAssigners: [foreign],
    sessionTimeout: 6_000,
  });
  await intruder.connect();
  await intruder.subscribe({ topic });
  const joined = new Promise((resolve) => intruder.on(intruder.events.GROUP_JOIN, resolve));
  await intruder.run({ eachMessage: () => Promise.resolve() });
  await joined;
  return intruder;
}

/** Starts the service and waits until its consumer has crashed. */
async function startAndCrash(): Promise<void> {
  service = await world.service({ kafka, sessionTimeoutMs });
  await until('it crashed', () => service.log.some(({ message }) => /consumer ended/.test(String(message))));
}
async function warm(): Promise<void> {
  for (const id of [1, 2, 3, 4, 5])
    await until('it is cached', async () => (await read(service, 'webform', id)).cache === 'hit');
}
const cachedKeys = () => world.redis.admin.keys('webform:*');
const announceAll = () =>
  kafka.send(...[1, 2, 3, 4, 5].map((id) => ({ value: { model: 'webform', id }, partition: id })));

test('replaces a crashed consumer, and serves reads meanwhile', async () => {
  await kafka.makeTopic();
  const intruder = await intrude(kafka.topic);
  await startAndCrash();
  expect(await service.check('kafka')).toBe(false);
  await warm();
  await announceAll();
  await intruder.disconnect();
  await kafka.consumed();
  expect(await cachedKeys()).toEqual([]);
});

test('remembers that the topic is new if the consumer crashes before its first check', async () => {
  const elsewhere = await createTestKafka();
  await elsewhere.makeTopic();
  const intruder = await intrude(elsewhere.topic);
  await startAndCrash();
  expect(service.log.filter(({ message }) => message === 'the topic is missing and is made')).toHaveLength(1);
  await announceAll();
  await intruder.disconnect();
  await kafka.consumed();
  expect(await world.sql('SELECT class FROM content.failed_job')).toEqual([]);
  await elsewhere.close();
});

test('logs the codec of a batch that it cannot read, and continues once the batch is deleted', async () => {
  const configEntries = [{ name: 'compression.type', value: 'producer' }];
  await kafka.admin.createTopics({ topics: [{ topic: kafka.topic, numPartitions: 8, configEntries }] });
  const producer = kafka.kafka.producer();
  await producer.connect();
  const messages = [{ value: '{"model":"webform","id":1}', partition: 0 }];
  await producer.send({ topic: kafka.topic, compression: CompressionTypes.GZIP, messages });
  await producer.disconnect();
  const gzip = CompressionCodecs[CompressionTypes.GZIP];
  // Stands in for zstd, which the test's broker could not write.
  CompressionCodecs[CompressionTypes.GZIP] = CompressionCodecs[CompressionTypes.ZSTD];
  try {
    await startAndCrash();
    expect(service.log).toContainEqual(
      expect.objectContaining({
        level: 'error',
        message: expect.stringMatching(/cannot be read \(ZSTD.*gzip or none.*kafka-delete-records/),
      }),
    );
    const queueLength = () => service.metric('invalidation_queue_length');
    await until('the queue is measured', async () => (await queueLength()) === 1);
    await warm();
    await kafka.deleteEventsBefore(1);
    await kafka.send({ value: { model: 'webform', id: 2 } });
    await kafka.consumed();
    expect(await cachedKeys()).toEqual([]);
    const jobs = await world.sql('SELECT error FROM content.failed_job ORDER BY id');
    // One open job stands for every loss of the topic: the first was the group's missing offset.
    expect(jobs).toEqual([{ error: expect.stringContaining('Events may have been lost') }]);
  } finally {
    CompressionCodecs[CompressionTypes.GZIP] = gzip;
  }
});
