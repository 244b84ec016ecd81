import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { models } from '@content-platform/contract';
import { until } from '../../../test/support/wait.ts';
import { createTestKafka, type TestKafka } from '../testing/kafka.ts';
import type { TestService } from '../testing/service.ts';
import { read, startWorld, type World } from '../testing/world.ts';

// The guard with a real broker; its rules are tested in offset-gap-guard.test.ts.
let world: World;
let kafka: TestKafka;
let service: TestService;
beforeAll(async () => {
  world = await startWorld();
  await (await world.service()).stop();
  await world.sql(
    `INSERT INTO content.record SELECT model, 1, 'One', '{}' FROM unnest($1::text[]) AS model`,
    models,
  );
});
beforeEach(async () => {
  kafka = await createTestKafka();
  await world.sql('TRUNCATE content.failed_job');
});
afterEach(async () => {
  await service.stop();
  await kafka.close();
});
afterAll(() => world.close());

/** Starts a service, has it consume `count` events, and caches a record of each model. */
async function startAndConsume(count: number): Promise<void> {
  service = await world.service({ kafka });
  await until('the consumer is in its group', () => service.check('kafka'));
  for (let sent = 0; sent < count; sent += 1)
    await kafka.send({ value: { model: 'webform', id: 100 + sent } });
  await kafka.consumed();
  for (const model of models)
    await until('the record is cached', async () => (await read(service, model, 1)).cache === 'hit');
}
/** Models whose record is not in the cache. Reads fill the cache again. */
async function cleared(): Promise<string[]> {
  const outcomes = await Promise.all(models.map(async (model) => (await read(service, model, 1)).cache));
  return models.filter((_, index) => outcomes[index] !== 'hit');
}
const lost = () => world.sql(`SELECT * FROM content.failed_job WHERE class = 'events_lost'`);
const recoveries = () => service.log.filter(({ source }) => source === 'recovery').length;

test('a new group on a new topic clears nothing, and continues at its offset after a restart', async () => {
  await startAndConsume(0);
  expect((await kafka.offsets()).map(({ committed }) => committed)).toEqual(Array(8).fill(0));
  await service.stop();
  service = await world.service({ kafka });
  await until('the consumer is in its group', () => service.check('kafka'));
  await kafka.consumed();
  expect(recoveries()).toBe(0);
  expect(await lost()).toEqual([]);
  expect(await cleared()).toEqual([]);
});

test("clears everything and stores one failed job when the group's offsets were deleted", async () => {
  await startAndConsume(3);
  await service.stop();
  await kafka.admin.deleteGroups([kafka.group]);
  service = await world.service({ kafka });
  await until('the failed job is stored', async () => (await lost()).length === 1);
  await kafka.consumed();
  expect(await cleared()).toEqual([...models]);
  const [job] = await lost();
  expect(job).toMatchObject({ topic: kafka.topic, partition: 0, offset: '0', value: null, state: 'open' });
  expect(await service.metric('failed_jobs_total{class="events_lost"}')).toBe(1);
});

test('clears everything before the events that the broker still has', async () => {
  await startAndConsume(3);
  await service.stop();
  for (let sent = 0; sent < 4; sent += 1) await kafka.send({ value: { model: 'webform', id: 200 + sent } });
  await kafka.deleteEventsBefore(5);
  service = await world.service({ kafka });
  await kafka.consumed();
  expect((await lost())[0]).toMatchObject({
    partition: 0,
    offset: '5',
    error: expect.stringContaining('oldest 5'),
  });
  const clears = service.log.filter(({ message }) => message === 'cleared');
  expect(clears.slice(0, 4).map(({ source }) => source)).toEqual(Array(4).fill('recovery'));
  const events = clears.filter(({ source }) => source === 'kafka').map(({ target }) => target);
  expect(new Set(events)).toEqual(new Set(['webform:202', 'webform:203']));
});

test('skips no event of a topic that is recreated while a batch waits', async () => {
  await startAndConsume(3);
  world.redis.pause();
  await kafka.send({ value: { model: 'webform', id: 2 } });
  await until('the batch waits', () => service.log.some(({ waiting }) => waiting === 1));
  await kafka.deleteTopic();
  await kafka.makeTopic();
  const ids = [400, 401, 402, 403, 404, 405];
  await kafka.send(...ids.map((id) => ({ value: { model: 'webform', id } })));
  world.redis.resume();
  await until('each event of the new topic is cleared', () => {
    const events = service.log.filter(({ source }) => source === 'kafka');
    return ids.every((id) => events.some(({ target }) => target === `webform:${id}`));
  });
  await kafka.consumed();
  await until('the failed job is stored', async () => (await lost()).length > 0);
  expect(await cleared()).toEqual(expect.arrayContaining(models.filter((model) => model !== 'webform')));
});
