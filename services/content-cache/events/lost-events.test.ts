import { expect, test } from '@jest/globals';
import { models } from '@content-platform/contract';
import { until } from '../../../test/support/wait.ts';
import type { TestService } from '../testing/service.ts';
import { useEvents } from '../testing/use-events.ts';

// The guard with a real broker; its rules are tested in offset-gap-guard.test.ts.
const events = useEvents();
const { startConsumer, cachedKeys } = events;

/** Starts a service, has it consume `count` events, and caches records of each model. */
async function startAndConsume(count: number): Promise<TestService> {
  const service = await startConsumer();
  for (let sent = 0; sent < count; sent += 1)
    await events.kafka.send({ value: { model: 'webform', id: 100 + sent } });
  await events.kafka.consumed();
  for (const model of models) await events.warm(service, model);
  return service;
}
const lostJobs = async () => (await events.failedJobs()).filter((job) => job.class === 'events_lost');
const clearsOf = (service: TestService, source: string) =>
  service.log.filter((line) => line['source'] === source);

test('stores no failed job for a new topic; after a restart the group continues at its offset and clears nothing', async () => {
  const first = await startAndConsume(0);
  expect((await events.kafka.offsets()).map(({ committed }) => committed)).toEqual(Array(8).fill(0));
  await first.stop();
  const service = await startConsumer();
  expect([...clearsOf(service, 'recovery'), ...first.log.filter(({ lost }) => lost)]).toEqual([]);
  expect(await lostJobs()).toEqual([]);
  expect(await cachedKeys('*')).toHaveLength(5 * models.length);
});

test("clears everything and stores one failed job when the group's offsets were deleted", async () => {
  await (await startAndConsume(3)).stop();
  await events.kafka.admin.deleteGroups([events.kafka.group]);
  const service = await startConsumer();
  expect(await cachedKeys('*')).toEqual([]);
  expect(await lostJobs()).toMatchObject([
    { topic: events.kafka.topic, partition: 0, offset: '0', value: null, state: 'open' },
  ]);
  expect(await service.metric('failed_jobs_total{class="events_lost"}')).toBe(1);
});

test('clears everything once after a loss although the failed job cannot be stored', async () => {
  const { world, kafka } = events;
  await (await startAndConsume(3)).stop();
  await kafka.admin.deleteGroups([kafka.group]);
  await world.sql('ALTER TABLE content.failed_job RENAME TO gone');
  const service = await world.service({ kafka });
  const refusals = () => service.log.filter(({ message }) => message === 'failed job not stored; retrying');
  await until('the job is refused', () => refusals().length > 0).finally(() =>
    world.sql('ALTER TABLE content.gone RENAME TO failed_job'),
  );
  await until('the job is stored', async () => (await lostJobs()).length > 0);
  expect(clearsOf(service, 'recovery')).toHaveLength(models.length);
  expect(await service.metric('invalidation_delay_seconds_count{source="recovery"}')).toBe(models.length);
});

test('clears everything before the events that the broker still has', async () => {
  await (await startAndConsume(3)).stop();
  for (let sent = 0; sent < 4; sent += 1)
    await events.kafka.send({ value: { model: 'webform', id: 200 + sent } });
  await events.kafka.deleteEventsBefore(5);
  const service = await startConsumer();
  expect(await lostJobs()).toMatchObject([
    { partition: 0, offset: '5', error: expect.stringContaining('oldest 5') },
  ]);
  const clears = service.log.filter(({ message }) => message === 'cleared');
  expect(clears.slice(0, 4).map(({ source }) => source)).toEqual(Array(4).fill('recovery'));
  const targets = clearsOf(service, 'kafka').map(({ target }) => target);
  expect(new Set(targets)).toEqual(new Set(['webform:202', 'webform:203']));
});

test('skips no event of a topic that is recreated while a batch waits', async () => {
  const service = await startAndConsume(3);
  events.world.redis.pause();
  await events.kafka.send({ value: { model: 'webform', id: 2 } });
  await until('the batch waits', () => service.log.some(({ waiting }) => waiting === 1));
  await events.kafka.deleteTopic();
  await events.kafka.makeTopic();
  const ids = [400, 401, 402, 403, 404, 405];
  await events.kafka.send(...ids.map((id) => ({ value: { model: 'webform', id } })));
  events.world.redis.resume();
  await until('each event of the new topic is cleared', () => {
    const targets = clearsOf(service, 'kafka').map(({ target }) => target);
    return ids.every((id) => targets.includes(`webform:${id}`));
  });
  await events.kafka.consumed();
  await until('the failed job is stored', async () => (await lostJobs()).length > 0);
  expect(await cachedKeys('*')).toEqual([]);
});
