import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  AssignerProtocol,
  CompressionCodecs,
  CompressionTypes,
  type Consumer,
  type PartitionAssigner,
} from 'kafkajs';
import { until } from '../../../test/support/wait.ts';
import { compressionAdvice } from './consumer.ts';
import { createTestKafka, type TestKafka } from '../testing/kafka.ts';
import { startProxy } from '../../../test/support/proxy.ts';
import type { TestService } from '../testing/service.ts';
import { read, startWorld, type World } from '../testing/world.ts';

/** Short for production, and longer than a busy machine keeps a heartbeat waiting. */
const sessionTimeoutMs = 5_000;

let world: World;
let kafka: TestKafka;
beforeAll(async () => {
  world = await startWorld();
  await (await world.service()).stop();
  await world.sql(
    `INSERT INTO content.record SELECT 'webform', id, 'One', '{}' FROM generate_series(1, 5) AS id`,
  );
});
beforeEach(async () => {
  kafka = await createTestKafka();
  await kafka.makeTopic();
  await world.sql('TRUNCATE content.failed_job');
  await world.redis.admin.flushall();
});
afterEach(async () => {
  await kafka.close();
});
afterAll(() => world.close());

async function startConsumer(options: Parameters<World['service']>[0] = {}): Promise<TestService> {
  const service = await world.service({ kafka, sessionTimeoutMs, ...options });
  await until('the consumer is there', () => service.check('kafka'));
  await kafka.consumed();
  return service;
}
const lines = (service: TestService, message: string) =>
  service.log.filter((line) => line['message'] === message);
const joins = (service: TestService) => lines(service, 'joined the consumer group').length;
const waiting = (service: TestService) =>
  until('the events wait', () => lines(service, 'events wait for the cache').length > 0);
const lag = async () =>
  (await kafka.offsets()).reduce((sum, { committed, high }) => sum + high - committed, 0);

/** Records 1 to 5 are in the cache. */
async function warm(service: TestService): Promise<void> {
  for (const id of [1, 2, 3, 4, 5]) {
    await until('it is cached', async () => (await read(service, 'webform', id)).cache === 'hit');
  }
}
/** Keys that are left of what was cached. */
const left = () => world.redis.admin.keys('webform:*');
const announce = () =>
  kafka.send(...[1, 2, 3, 4, 5].map((id) => ({ value: { model: 'webform', id }, partition: id })));

test('Redis hangs under events, and goes on: all are cleared', async () => {
  const service = await startConsumer();
  await warm(service);
  world.redis.pause();
  await announce();
  await waiting(service);
  expect(await lag()).toBe(5);
  world.redis.resume();
  await kafka.consumed();
  expect(await left()).toEqual([]);
  expect(joins(service)).toBe(1);
  await service.stop();
});

test('Redis is away for two session timeouts: nobody leaves the group, nothing is skipped, models neither', async () => {
  const service = await startConsumer();
  await warm(service);
  await world.redis.admin.save();
  await world.redis.kill();
  await kafka.send({ value: { model: 'webform', id: 1 } }, { value: { model: 'webform', id: 2 } });
  await kafka.send({ value: { pattern: 'webform:*' }, partition: 3 });
  await waiting(service);
  const before = await kafka.offsets();
  await sleep(2 * sessionTimeoutMs);
  expect(await kafka.offsets()).toEqual(before);
  expect(await lag()).toBe(3);
  expect(await kafka.members()).toBe(1);
  await until('the queue is measured', async () => (await service.metric('invalidation_queue_length')) === 3);
  await world.redis.restart();
  await kafka.consumed();
  expect(await left()).toEqual([]);
  expect(joins(service)).toBe(1);
  await service.stop();
});

test('PostgreSQL is away: a poison event is not skipped', async () => {
  const proxy = await startProxy(new URL(world.databaseUrl));
  const service = await startConsumer({ databaseUrl: proxy.url });
  proxy.cut();
  await kafka.send({ value: 'poison' });
  await until('it was tried', () => lines(service, 'a failed job cannot be stored yet').length > 0);
  expect(await lag()).toBe(1);
  await proxy.mend();
  await kafka.consumed();
  expect(await world.sql('SELECT FROM content.failed_job')).toHaveLength(1);
  await service.stop();
  await proxy.close();
});

test('a consumer is killed in a batch: the next one takes it up where it was committed', async () => {
  const options = { databaseUrl: world.databaseUrl, redisUrl: world.redis.url, kafka, sessionTimeoutMs };
  const { brokers, topic, group } = kafka;
  const file = fileURLToPath(new URL('../testing/service-process.ts', import.meta.url));
  const argument = JSON.stringify({ ...options, kafka: { brokers, topic, group } });
  const child = spawn(process.execPath, [file, argument], { stdio: ['ignore', 'pipe', 'inherit'] });
  const said: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => said.push(line));
  const hears = (text: string) => until(`it says: ${text}`, () => said.some((line) => line.includes(text)));
  try {
    await hears('joined the consumer group');
    await kafka.consumed();
    await kafka.send({ value: { model: 'webform', id: 1 }, partition: 1 });
    await kafka.consumed();
    const reader = await world.service();
    await warm(reader);
    world.redis.pause();
    await announce();
    await hears('events wait for the cache');
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
    world.redis.resume();
  }
  expect(await lag()).toBe(5);
  const service = await startConsumer();
  await kafka.consumed();
  expect(await left()).toEqual([]);
  const cleared = lines(service, 'cleared').map(({ target }) => target);
  expect(cleared.toSorted()).toEqual([1, 2, 3, 4, 5].map((id) => `webform:${id}`));
  await service.stop();
});

test('a consumer that stops in a batch does so in time, and commits nothing', async () => {
  const service = await startConsumer();
  world.redis.pause();
  await announce();
  await waiting(service);
  const start = performance.now();
  await service.stop();
  expect(performance.now() - start).toBeLessThan(8_000);
  expect(await lag()).toBe(5);
  world.redis.resume();
});

test('another process joins while a batch waits: the batch ends without a commit, and is done afterwards', async () => {
  const service = await startConsumer();
  await warm(service);
  world.redis.pause();
  await announce();
  await waiting(service);
  const other = await world.service({ kafka, sessionTimeoutMs });
  await until('both are in the group', async () => (await kafka.members()) === 2 && joins(service) >= 2);
  expect(await lag()).toBe(5);
  world.redis.resume();
  await kafka.consumed();
  expect(await left()).toEqual([]);
  await Promise.all([service.stop(), other.stop()]);
});

/** Another program's consumer in our group: kafkajs gives up when it meets one. */
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
const crashes = (service: TestService) =>
  until('it crashed', () => service.log.some(({ message }) => /consumer ended/.test(String(message))));

test('a consumer that crashed for good is made anew, and reading goes on meanwhile', async () => {
  const intruder = await intrude(kafka.topic);
  const service = await world.service({ kafka, sessionTimeoutMs });
  await crashes(service);
  expect(await service.check('kafka')).toBe(false);
  await warm(service);
  await announce();
  await intruder.disconnect();
  await kafka.consumed();
  expect(await left()).toEqual([]);
  await service.stop();
});

test('a topic is still new to the consumer that follows one that crashed before it had looked', async () => {
  const elsewhere = await createTestKafka();
  await elsewhere.makeTopic();
  await kafka.deleteTopic();
  const intruder = await intrude(elsewhere.topic);
  const service = await world.service({ kafka, sessionTimeoutMs });
  await crashes(service);
  expect(lines(service, 'the topic is missing and is made')).toHaveLength(1);
  await announce();
  await intruder.disconnect();
  await kafka.consumed();
  expect(await world.sql('SELECT class FROM content.failed_job')).toEqual([]);
  await service.stop();
  await elsewhere.close();
});

test('a batch that is compressed with what kafkajs cannot read: it is said, before and after, and the way out works', async () => {
  await kafka.deleteTopic();
  const configEntries = [{ name: 'compression.type', value: 'producer' }];
  await kafka.admin.createTopics({ topics: [{ topic: kafka.topic, numPartitions: 8, configEntries }] });
  const producer = kafka.kafka.producer();
  await producer.connect();
  const messages = [{ value: '{"model":"webform","id":1}', partition: 0 }];
  await producer.send({ topic: kafka.topic, compression: CompressionTypes.GZIP, messages });
  await producer.disconnect();
  const gzip = CompressionCodecs[CompressionTypes.GZIP];
  // gzip stands in for zstd: a broker needs libraries for the others.
  CompressionCodecs[CompressionTypes.GZIP] = CompressionCodecs[CompressionTypes.ZSTD];
  try {
    const service = await world.service({ kafka, sessionTimeoutMs });
    await crashes(service);
    expect(lines(service, compressionAdvice)).toMatchObject([
      { level: 'warn', 'compression.type': 'producer' },
    ]);
    expect(service.log).toContainEqual(
      expect.objectContaining({
        level: 'error',
        message: expect.stringMatching(/gzip or none.*kafka-delete-records/),
      }),
    );
    await until(
      'the queue is measured',
      async () => (await service.metric('invalidation_queue_length')) === 1,
    );
    await warm(service);
    await kafka.deleteEventsBefore(1);
    await kafka.send({ value: { model: 'webform', id: 2 } });
    await kafka.consumed();
    expect(await left()).toEqual([]);
    const jobs = await world.sql('SELECT error FROM content.failed_job ORDER BY id');
    expect(jobs.at(-1)).toEqual({ error: expect.stringContaining(', oldest 1)') });
    await service.stop();
  } finally {
    CompressionCodecs[CompressionTypes.GZIP] = gzip;
  }
});

test('Kafka is away at the start: reading goes on, and it connects when Kafka is there', async () => {
  const proxy = await startProxy(new URL(`kafka://${kafka.brokers}`));
  proxy.cut();
  const brokers = new URL(proxy.url).host;
  const service = await world.service({ kafka: { ...kafka, brokers }, sessionTimeoutMs });
  await warm(service);
  expect(await service.check('kafka')).toBe(false);
  expect(await service.check('postgres')).toBe(true);
  await announce();
  await proxy.mend();
  await kafka.consumed();
  expect(await left()).toEqual([]);
  await service.stop();
  await proxy.close();
});
