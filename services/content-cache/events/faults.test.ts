import { beforeEach, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { clearModel } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { startProxy } from '../../../test/support/proxy.ts';
import { until, within } from '../../../test/support/wait.ts';
import type { TestService, TestServiceOptions } from '../testing/service.ts';
import { useEvents } from '../testing/use-events.ts';

/** Shorter than in production, longer than a busy machine delays a heartbeat. */
const sessionTimeoutMs = 5_000;

const events = useEvents();
const { warm, announce, cachedKeys, lag } = events;
beforeEach(() => events.kafka.makeTopic());

const startConsumer = (options: Partial<TestServiceOptions> = {}) =>
  events.startConsumer({ sessionTimeoutMs, ...options });
const lines = (service: TestService, message: string) =>
  service.log.filter((line) => line['message'] === message);
const joins = (service: TestService) => lines(service, 'joined the consumer group').length;
const untilClearRefused = (service: TestService) =>
  until('a clear was refused', () => lines(service, 'clear refused; the events wait for a retry').length > 0);
const untilQueueIs = (service: TestService, length: number) =>
  until(`the queue is ${length}`, async () => (await service.metric('invalidation_queue_length')) === length);

test('skips no event and stays in the group while Redis is unreachable for two session timeouts', async () => {
  const { world, kafka } = events;
  const service = await startConsumer();
  await warm(service);
  const joinsBefore = joins(service);
  await world.redis.admin.save();
  await world.redis.kill();
  await kafka.send({ value: { model: 'webform', id: 1 } }, { value: { model: 'webform', id: 2 } });
  await kafka.send({ value: { pattern: 'webform:*' }, partition: 3 });
  await untilClearRefused(service);
  const before = await kafka.offsets();
  await sleep(2 * sessionTimeoutMs);
  expect(await kafka.offsets()).toEqual(before);
  expect(await lag()).toBe(3);
  expect(await kafka.members()).toBe(1);
  await untilQueueIs(service, 3);
  const body = { model: 'webform', id: 3 } as const;
  const { status } = await call(service.url, clearModel, { body, token: service.token('cache:clear') });
  expect(status).toBe(503);
  expect(await service.metric('invalidation_queue_length')).toBe(4);
  await world.redis.restart();
  await kafka.consumed();
  expect(await cachedKeys()).toEqual([]);
  expect(joins(service)).toBe(joinsBefore);
});

test('skips no poison event while PostgreSQL is unreachable', async () => {
  const { world, kafka } = events;
  const proxy = await startProxy(new URL(world.databaseUrl));
  const service = await startConsumer({ databaseUrl: proxy.url });
  proxy.cut();
  await kafka.send({ value: 'poison' });
  await until('an attempt failed', () => lines(service, 'failed job not stored; retrying').length > 0);
  expect(await lag()).toBe(1);
  await untilQueueIs(service, 1);
  await proxy.repair();
  await kafka.consumed();
  expect(await events.failedJobs()).toHaveLength(1);
  await service.stop();
  await proxy.close();
});

test('stops in time during a batch, and commits nothing', async () => {
  const service = await startConsumer();
  events.world.redis.pause();
  await announce();
  await untilClearRefused(service);
  await within('the stop', service.stop());
  expect(await lag()).toBe(5);
  events.world.redis.resume();
});

test('a waiting batch ends without a commit when another process joins, and is processed afterwards', async () => {
  const { world, kafka } = events;
  const service = await startConsumer();
  await warm(service);
  world.redis.pause();
  await announce();
  await untilClearRefused(service);
  await world.service({ kafka, sessionTimeoutMs });
  await until('both are in the group', async () => (await kafka.members()) === 2 && joins(service) >= 2);
  expect(await lag()).toBe(5);
  world.redis.resume();
  await kafka.consumed();
  expect(await cachedKeys()).toEqual([]);
});

test('serves reads while Kafka is unreachable at the start, and connects later', async () => {
  const { world, kafka } = events;
  const proxy = await startProxy(new URL(`kafka://${kafka.brokers}`));
  proxy.cut();
  const brokers = new URL(proxy.url).host;
  const service = await world.service({ kafka: { ...kafka, brokers }, sessionTimeoutMs });
  await warm(service);
  expect(await service.check('kafka')).toBe(false);
  expect(await service.check('postgres')).toBe(true);
  // Otherwise no alert would fire for a Kafka that was never reachable.
  const measuredAt = await service.metric('invalidation_queue_measured_timestamp_seconds');
  expect(measuredAt).toBeGreaterThan(Date.now() / 1_000 - 300);
  await announce();
  await proxy.repair();
  await kafka.consumed();
  expect(await cachedKeys()).toEqual([]);
  await service.stop();
  await proxy.close();
});
