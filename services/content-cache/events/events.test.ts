import { expect, test } from '@jest/globals';
import { until } from '../../../test/support/wait.ts';
import { useEvents } from '../testing/use-events.ts';

const events = useEvents();
const { startConsumer, warm, cachedKeys, failedJobs } = events;

test('creates the topic with 8 partitions and 7 days of retention', async () => {
  await startConsumer();
  const { admin, topic } = events.kafka;
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
  expect(topics[0]!.partitions).toHaveLength(8);
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: 2, name: topic, configNames: ['compression.type', 'retention.ms'] }],
  });
  const settings = resources[0]!.configEntries.map((entry) => `${entry.configName}=${entry.configValue}`);
  expect(settings.toSorted()).toEqual(['compression.type=uncompressed', 'retention.ms=604800000']);
});

test('commits the offset of an event after its record or model is cleared', async () => {
  const service = await startConsumer();
  const { kafka } = events;
  await warm(service);
  await warm(service, 'pathway');
  await kafka.send({ value: { model: 'webform', id: 1, occurred_at: new Date().toISOString() } });
  await kafka.consumed();
  expect(await cachedKeys()).toEqual(['webform:2', 'webform:3', 'webform:4', 'webform:5']);
  expect(await service.metric('invalidation_delay_seconds_sum{source="kafka"}')).toBeLessThan(60);
  await kafka.send({ value: { pattern: 'webform:*', occurred_at: '1970-01-01T00:00:00Z' }, partition: 5 });
  await kafka.consumed();
  expect(await cachedKeys()).toEqual([]);
  expect(await cachedKeys('pathway:*')).toHaveLength(5);
  expect(await service.metric('invalidation_delay_seconds_count{source="kafka"}')).toBe(2);
  // The second counts as the time that events are kept.
  const week = 7 * 24 * 60 * 60;
  const sum = await service.metric('invalidation_delay_seconds_sum{source="kafka"}');
  expect(Math.floor(sum / week)).toBe(1);
});

test('stores any unprocessable bytes unchanged as a failed job, and clears the events after them', async () => {
  const service = await startConsumer();
  const { kafka } = events;
  await warm(service);
  const poison: [string, Buffer | null, Buffer | null][] = [
    ['not_json', null, Buffer.from('not JSON')],
    ['not_json', Buffer.from([0]), Buffer.from([0])],
    ['not_json', Buffer.from([0xff, 0, 0xfe]), Buffer.from([0xff])],
    ['not_json', null, Buffer.from('"\0 a string with a zero byte in it')],
    ['not_json', null, Buffer.from(`{"model": ${'🎈'.repeat(200)}`)],
    ['empty', Buffer.from('webform:1'), null],
    ['empty', null, Buffer.alloc(0)],
    ['too_large', null, Buffer.alloc(1_000_000, 'x')],
    ['too_large', null, Buffer.alloc(900_000, '[')],
    ['unknown_model', Buffer.from('letter:1'), Buffer.from('{"model":"letter","id":1}')],
    ['invalid_event', null, Buffer.from('{"model":"webform","id":"1"}')],
  ];
  for (const [, key, value] of poison) await kafka.send({ key, value });
  const future = new Date(Date.now() + 86_400_000).toISOString();
  await kafka.send({ key: 'pathway:9', value: { model: 'webform', id: 1, occurred_at: future } });
  await kafka.consumed();

  const jobs = await failedJobs();
  const base64 = (bytes: Buffer | null) => bytes?.toString('base64') ?? null;
  expect(jobs.map((job) => [job.class, base64(job.key), base64(job.value)])).toEqual(
    poison.map(([name, key, value]) => [name, base64(key), base64(value)]),
  );
  expect(jobs.at(-1)!.model).toBe('webform');
  // Only the value counts, not a wrong key or a future time.
  expect(await cachedKeys()).not.toContain('webform:1');
  expect(await service.metric('failed_jobs_total{class="too_large"}')).toBe(2);
  expect(await service.metric('failed_jobs_open')).toBe(poison.length);
  expect(await service.check('kafka')).toBe(true);
});

test('stores a redelivered poison event once, and one at the same offset of a recreated topic again', async () => {
  const first = await startConsumer();
  const { kafka } = events;
  await kafka.send({ value: 'poison' });
  await kafka.consumed();
  await first.stop();
  await kafka.admin.setOffsets({
    groupId: kafka.group,
    topic: kafka.topic,
    partitions: [{ partition: 0, offset: '0' }],
  });
  const second = await startConsumer();
  expect(await failedJobs()).toMatchObject([{ class: 'not_json', offset: '0' }]);

  await second.stop();
  await kafka.deleteTopic();
  await kafka.makeTopic();
  await kafka.send({ value: 'poison' });
  await startConsumer();
  const found = (await failedJobs()).filter(({ class: name }) => name === 'not_json');
  expect(found).toMatchObject([{ offset: '0' }, { offset: '0' }]);
});

test('an aborted transaction clears nothing, and leaves nothing in the queue', async () => {
  const service = await startConsumer();
  await warm(service);
  const { kafka, topic, offsets } = events.kafka;
  const producer = kafka.producer({ transactionalId: topic, maxInFlightRequests: 1 });
  await producer.connect();
  const transaction = await producer.transaction();
  const value = JSON.stringify({ model: 'webform', id: 1 });
  await transaction.send({ topic, messages: [{ partition: 0, value }] });
  await transaction.abort();
  await producer.disconnect();
  await until('the offset is committed', async () => {
    const { committed, high } = (await offsets()).find(({ partition }) => partition === 0)!;
    return high > 0 && committed === high;
  });
  expect(await cachedKeys()).toHaveLength(5);
});
