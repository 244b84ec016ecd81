import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { models } from '@content-platform/contract';
import { until } from '../../../test/support/wait.ts';
import { createTestKafka, type TestKafka } from '../testing/kafka.ts';
import type { TestService } from '../testing/service.ts';
import { read, startWorld, type World } from '../testing/world.ts';

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

/** A service that has consumed `count` events. */
async function consumed(count: number): Promise<void> {
  service = await world.service({ kafka });
  await until('the consumer is there', () => service.check('kafka'));
  for (let sent = 0; sent < count; sent += 1)
    await kafka.send({ value: { model: 'webform', id: 100 + sent } });
  await kafka.consumed();
}
const startAgain = async () => {
  service = await world.service({ kafka });
};
async function warm(): Promise<void> {
  for (const model of models) {
    await until('it is cached', async () => (await read(service, model, 1)).cache === 'hit');
  }
}
/** Models whose record is not in the cache. Reads fill it again. */
async function cleared(): Promise<string[]> {
  const outcomes = await Promise.all(models.map(async (model) => (await read(service, model, 1)).cache));
  return models.filter((_, index) => outcomes[index] !== 'hit');
}
const lost = () => world.sql(`SELECT * FROM content.failed_job WHERE class = 'events_lost'`);
const recoveries = () => service.log.filter(({ source }) => source === 'recovery').length;

test('a new group on a new topic has lost nothing, and a restart finds its place', async () => {
  await consumed(0);
  expect(await lost()).toEqual([]);
  expect((await kafka.offsets()).map(({ committed }) => committed)).toEqual(
    Array.from({ length: 8 }, () => 0),
  );
  await warm();
  await service.stop();
  await startAgain();
  await until('the consumer is there', () => service.check('kafka'));
  await kafka.consumed();
  expect(recoveries()).toBe(0);
  expect(await cleared()).toEqual([]);
});

test('events that come as soon as the topic is there are not lost', async () => {
  service = await world.service({ kafka });
  await until('the topic is made', async () => (await kafka.admin.listTopics()).includes(kafka.topic));
  for (let partition = 0; partition < 8; partition += 1)
    await kafka.send({ value: { model: 'webform', id: 1 }, partition });
  await kafka.consumed();
  expect(await lost()).toEqual([]);
});

test("the group's offsets were deleted: everything is cleared, and a failed job says so", async () => {
  await consumed(3);
  await warm();
  await service.stop();
  await kafka.admin.deleteGroups([kafka.group]);
  await startAgain();
  await until('it is said', async () => (await lost()).length === 1);
  await kafka.consumed();
  expect(await cleared()).toEqual([...models]);
  const [job] = await lost();
  expect(job).toMatchObject({ topic: kafka.topic, partition: 0, offset: '0', value: null, state: 'open' });
  expect(await service.metric('failed_jobs_total{class="events_lost"}')).toBe(1);
});

test('events that the broker has deleted: everything is cleared before those that are left', async () => {
  await consumed(3);
  await service.stop();
  for (let sent = 0; sent < 4; sent += 1) await kafka.send({ value: { model: 'webform', id: 200 + sent } });
  await kafka.deleteEventsBefore(5);
  await startAgain();
  await kafka.consumed();
  expect((await lost())[0]).toMatchObject({
    partition: 0,
    offset: '5',
    error: expect.stringContaining('oldest 5'),
  });
  const clears = service.log.filter(({ message }) => message === 'cleared');
  expect(clears.slice(0, 4).map(({ source }) => source)).toEqual(Array.from({ length: 4 }, () => 'recovery'));
  const events = clears.filter(({ source }) => source === 'kafka').map(({ target }) => target);
  expect(new Set(events)).toEqual(new Set(['webform:202', 'webform:203']));
});

test('all events of a partition are gone, and no new one comes', async () => {
  await consumed(1);
  await warm();
  await service.stop();
  await kafka.send({ value: { model: 'webform', id: 1 } });
  await kafka.deleteEventsBefore(2);
  await startAgain();
  await until('it is said', async () => (await lost()).length === 1);
  await kafka.consumed();
  expect(await cleared()).toEqual([...models]);
});

test('events of a partition are gone before a busy consumer came to them, and no new one comes', async () => {
  await consumed(1);
  await warm();
  world.redis.pause();
  await kafka.send({ value: { model: 'webform', id: 2 } });
  await until('the consumer is busy', () => service.log.some(({ waiting }) => waiting === 1));
  await kafka.send({ value: { model: 'pathway', id: 1 }, partition: 1 });
  await kafka.deleteEventsBefore(1, 1);
  world.redis.resume();
  await until('it is said', async () => (await lost()).length === 1);
  await kafka.consumed();
  expect(await cleared()).toEqual([...models]);
});

test('the topic was made anew while nobody consumed', async () => {
  await consumed(3);
  await warm();
  await service.stop();
  await kafka.deleteTopic();
  await kafka.makeTopic();
  await kafka.send({ value: { model: 'webform', id: 300 } });
  await startAgain();
  await until('it is said', async () => (await lost()).length === 1);
  await kafka.consumed();
  expect(await cleared()).toEqual([...models]);
  expect(service.log.filter(({ target }) => target === 'webform:300')).not.toEqual([]);
});

const tellNew = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ value: { model: 'webform', id: 400 + index } }));
/** Each event of the new topic is cleared, and the loss of the old one is made up for. */
async function noneSkipped(count: number): Promise<void> {
  await until('each event of the new topic is cleared', () => {
    const targets = new Set(
      service.log.filter(({ source }) => source === 'kafka').map(({ target }) => target),
    );
    return tellNew(count).every(({ value }) => targets.has(`webform:${value.id}`));
  });
  await kafka.consumed();
  await until('it is said', async () => (await lost()).length > 0);
  expect(await cleared()).toEqual(expect.arrayContaining(models.filter((model) => model !== 'webform')));
}

test('the topic is made anew under the consumer: none of the new events is skipped', async () => {
  await consumed(3);
  await warm();
  await kafka.deleteTopic();
  await kafka.makeTopic();
  await kafka.send(...tellNew(5));
  await noneSkipped(5);
});

test.each([
  ['fewer events than before', 2],
  ['as many events as before', 4],
  ['more events than before', 6],
])('the topic is made anew while a batch waits, with %s: none of them is skipped', async (_, count) => {
  await consumed(3);
  await warm();
  world.redis.pause();
  await kafka.send({ value: { model: 'webform', id: 2 } });
  await until('the consumer is busy', () => service.log.some(({ waiting }) => waiting === 1));
  await kafka.deleteTopic();
  await kafka.makeTopic();
  await kafka.send(...tellNew(count));
  world.redis.resume();
  await noneSkipped(count);
});
