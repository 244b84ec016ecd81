// Faults of the consumer that only another program can cause.
import { expect, test } from '@jest/globals';
import kafkajs, { type Consumer, type PartitionAssigner } from 'kafkajs';
import { until } from '../../../test/support/wait.ts';
import { createTestKafka } from '../testing/kafka.ts';
import type { TestService } from '../testing/service.ts';
import { useEvents } from '../testing/use-events.ts';

const { AssignerProtocol, CompressionCodecs, CompressionTypes } = kafkajs;

const events = useEvents();
const { warm, announce, cachedKeys } = events;

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
  const { kafka, group } = events.kafka;
  const intruder = kafka.consumer({ groupId: group, partitionAssigners: [foreign], sessionTimeout: 6_000 });
  await intruder.connect();
  await intruder.subscribe({ topic });
  const joined = new Promise((resolve) => intruder.on(intruder.events.GROUP_JOIN, resolve));
  await intruder.run({ eachMessage: () => Promise.resolve() });
  await joined;
  return intruder;
}

/** Starts the service and waits until its consumer has crashed. */
async function startAndCrash(): Promise<TestService> {
  const service = await events.world.service({ kafka: events.kafka, sessionTimeoutMs: 5_000 });
  await until('it crashed', () => service.log.some(({ message }) => /consumer ended/.test(String(message))));
  return service;
}

test('replaces a crashed consumer, and serves reads meanwhile', async () => {
  const { kafka } = events;
  await kafka.makeTopic();
  const intruder = await intrude(kafka.topic);
  const service = await startAndCrash();
  expect(await service.check('kafka')).toBe(false);
  await warm(service);
  await announce();
  await intruder.disconnect();
  await kafka.consumed();
  expect(await cachedKeys()).toEqual([]);
});

test('remembers that the topic is new if the consumer crashes before its first check', async () => {
  const elsewhere = await createTestKafka();
  await elsewhere.makeTopic();
  const intruder = await intrude(elsewhere.topic);
  const service = await startAndCrash();
  expect(service.log.filter(({ message }) => message === 'the topic is missing; creating it')).toHaveLength(
    1,
  );
  await announce();
  await intruder.disconnect();
  await events.kafka.consumed();
  expect(await events.failedJobs()).toEqual([]);
  await elsewhere.close();
});

test('logs the codec of a batch that it cannot read, and continues once the batch is deleted', async () => {
  const { admin, kafka, topic, consumed, deleteEventsBefore, send } = events.kafka;
  const configEntries = [{ name: 'compression.type', value: 'producer' }];
  await admin.createTopics({ topics: [{ topic, numPartitions: 8, configEntries }] });
  const producer = kafka.producer();
  await producer.connect();
  const messages = [{ value: '{"model":"webform","id":1}', partition: 0 }];
  await producer.send({ topic, compression: CompressionTypes.GZIP, messages });
  await producer.disconnect();
  const gzip = CompressionCodecs[CompressionTypes.GZIP];
  // Replaces gzip by a codec that fails as zstd does, because the test's broker cannot write zstd.
  CompressionCodecs[CompressionTypes.GZIP] = CompressionCodecs[CompressionTypes.ZSTD];
  try {
    const service = await startAndCrash();
    expect(service.log).toContainEqual(
      expect.objectContaining({
        level: 'error',
        message: expect.stringMatching(/cannot be read \(ZSTD.*compress with gzip.*kafka-delete-records/),
      }),
    );
    const queueLength = () => service.metric('invalidation_queue_length');
    await until('the queue is measured', async () => (await queueLength()) === 1);
    await warm(service);
    await deleteEventsBefore(1);
    await send({ value: { model: 'webform', id: 2 } });
    await consumed();
    expect(await cachedKeys()).toEqual([]);
    // One open job stands for every loss of the topic: the first was the group's missing offset.
    expect(await events.failedJobs()).toEqual([
      expect.objectContaining({ error: expect.stringContaining('Events may have been lost') }),
    ]);
  } finally {
    CompressionCodecs[CompressionTypes.GZIP] = gzip;
  }
});
