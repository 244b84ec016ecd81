import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { clearModel } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { until, within } from '../../../test/support/wait.ts';
import { createTestKafka, type TestKafka } from '../testing/kafka.ts';
import { startProxy } from '../../../test/support/proxy.ts';
import type { TestService } from '../testing/service.ts';
import { read, startWorld, type World } from '../testing/world.ts';

/** Shorter than in production, longer than a busy machine delays a heartbeat. */
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

/** Caches records 1 to 5. */
async function warm(service: TestService): Promise<void> {
  for (const id of [1, 2, 3, 4, 5]) {
    await until('it is cached', async () => (await read(service, 'webform', id)).cache === 'hit');
  }
}
/** Returns the keys that are still cached. */
const left = () => world.redis.admin.keys('webform:*');
const announce = () =>
  kafka.send(...[1, 2, 3, 4, 5].map((id) => ({ value: { model: 'webform', id }, partition: id })));

test('skips no event and stays in the group while Redis is unreachable for two session timeouts', async () => {
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
  const body = { model: 'webform', id: 3 } as const;
  const { status } = await call(service.url, clearModel, { body, token: service.token('cache:clear') });
  expect(status).toBe(503);
  expect(await service.metric('invalidation_queue_length')).toBe(4);
  await world.redis.restart();
  await kafka.consumed();
  expect(await left()).toEqual([]);
  expect(joins(service)).toBe(1);
  await service.stop();
});

test('skips no poison event while PostgreSQL is unreachable', async () => {
  const proxy = await startProxy(new URL(world.databaseUrl));
  const service = await startConsumer({ databaseUrl: proxy.url });
  proxy.cut();
  await kafka.send({ value: 'poison' });
  await until('it was tried', () => lines(service, 'a failed job cannot be stored yet').length > 0);
  expect(await lag()).toBe(1);
  await until('the queue is measured', async () => (await service.metric('invalidation_queue_length')) === 1);
  await proxy.mend();
  await kafka.consumed();
  expect(await world.sql('SELECT FROM content.failed_job')).toHaveLength(1);
  await service.stop();
  await proxy.close();
});

test('stops in time during a batch, and commits nothing', async () => {
  const service = await startConsumer();
  world.redis.pause();
  await announce();
  await waiting(service);
  await within('the stop', service.stop());
  expect(await lag()).toBe(5);
  world.redis.resume();
});

test('a waiting batch ends without a commit when another process joins, and is processed afterwards', async () => {
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

test('serves reads while Kafka is unreachable at the start, and connects later', async () => {
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
