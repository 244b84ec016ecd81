import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Consumer } from 'kafkajs';
import { createLogger } from '@content-platform/chassis';
import { until } from '../../../test/support/wait.ts';
import { createTestKafka, type TestKafka } from '../testing/kafka.ts';
import { createBroker, type Broker } from './broker.ts';
import { createContinuity } from './continuity.ts';

let kafka: TestKafka;
let broker: Broker;
let consumer: Consumer;
let ending: AbortController;
let losses: number;
beforeEach(async () => {
  kafka = await createTestKafka();
  broker = createBroker(kafka.kafka, kafka.topic, kafka.group);
  ending = new AbortController();
  losses = 0;
  await kafka.makeTopic();
  consumer = kafka.kafka.consumer({ groupId: kafka.group, maxWaitTimeInMs: 100 });
  const joined = Promise.withResolvers<unknown>();
  consumer.on(consumer.events.GROUP_JOIN, joined.resolve);
  await consumer.connect();
  await consumer.subscribe({ topic: kafka.topic, fromBeginning: true });
  await consumer.run({ autoCommit: false, eachBatch: () => Promise.resolve() });
  await joined.promise;
});
afterEach(async () => {
  ending.abort();
  await consumer.disconnect();
  await broker.close();
  await kafka.close();
});

/** What watches partition 0, of which nothing is processed yet. `committed` is what it is told of the group's offsets. */
async function watch(committed = broker.committed) {
  await consumer.commitOffsets([{ topic: kafka.topic, partition: 0, offset: '0' }]);
  const watched = createContinuity({
    consumer,
    broker: { ...broker, committed },
    topic: kafka.topic,
    isNew: false,
    onChecked: () => undefined,
    onLost: () => {
      losses += 1;
      return Promise.resolve();
    },
    logger: createLogger('content-cache', 'silent'),
    signal: ending.signal,
  });
  await watched.joined([0]);
  return watched;
}
const place = async () => (await kafka.offsets()).find(({ partition }) => partition === 0)!;
const events = (count: number) =>
  Array.from({ length: count }, (_, id) => ({ value: { model: 'webform', id } }));

test('what was taken back is committed', async () => {
  const watched = await watch();
  await kafka.send(...events(3));
  watched.passOver(0, 3);
  await watched.ready();
  expect(await place()).toMatchObject({ committed: 3, high: 3 });
});

test('a topic that is made anew before the commit keeps its first events', async () => {
  const asked = Promise.withResolvers<void>();
  const answering = Promise.withResolvers<void>();
  const watched = await watch(async () => {
    const found = await broker.committed();
    asked.resolve();
    await answering.promise;
    return found;
  });
  await kafka.send(...events(3));
  watched.passOver(0, 3);
  await asked.promise;
  await kafka.deleteTopic();
  await kafka.makeTopic();
  await kafka.send(...events(5));
  watched.look(await kafka.offsets());
  await until('the loss is made up for', async () => (await place()).committed === 0);
  answering.resolve();
  await watched.ready();
  expect(losses).toBe(1);
  expect(await place()).toMatchObject({ committed: 0, high: 5 });
});
