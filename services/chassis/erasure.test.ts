import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { calledAfterEach } from '../../test/support/called-after-each.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { followDeletedUsers, type DeletedUser } from './erasure.ts';
import { openTestService } from './testing/open-test-service.ts';

const service = useStarted(() => openTestService('letters', async () => {}, 'empty'));
beforeAll(async () => {
  await sql('CREATE SCHEMA letters; CREATE TABLE letters.deleted_user_position (after bigint)');
  await sql('CREATE TABLE letters.letter (user_id bigint)');
});
const sql = async (text: string, values: unknown[] = []) =>
  (await service.database.query<{ user_id: string; after: string }>('test', text, values)).rows;

let deleted: (DeletedUser & { position: number })[];
let isAvailable: boolean;
/** The positions after which the follower asked: it has erased the users up to there. */
let asked: number[];
const stops = calledAfterEach();
beforeEach(async () => {
  [deleted, isAvailable, asked] = [[], true, []];
  await sql('DELETE FROM letters.deleted_user_position');
  await sql('INSERT INTO letters.deleted_user_position VALUES (0)');
  await sql('TRUNCATE letters.letter');
});

const fetchPage = async (after: number) => {
  if (!isAvailable) throw new Error('unavailable');
  asked.push(after);
  const entries = deleted.filter(({ position }) => position > after).slice(0, 2);
  return { entries, last: deleted.at(-1)?.position ?? 0 };
};
const remove = (id: number) =>
  deleted.push({ position: deleted.length + 1, id, deleted_at: new Date().toISOString() });
const write = (id: number) => sql('INSERT INTO letters.letter VALUES ($1)', [id]);
const left = async () =>
  (await sql('SELECT user_id FROM letters.letter')).map(({ user_id }) => Number(user_id));
const stored = async () => Number((await sql('SELECT after FROM letters.deleted_user_position'))[0]!.after);

function follow(
  timing = { readEveryMs: 100, repeatEveryMs: 30, repeatForMs: 600_000 },
  erase = eraseLetters,
) {
  const options = { erase, query: service.database.query, schema: 'letters' };
  const stop = followDeletedUsers(fetchPage, options, service.logger, timing);
  stops.push(stop);
  return stop;
}
const eraseLetters = async (ids: number[]) =>
  void (await sql('DELETE FROM letters.letter WHERE user_id = ANY ($1)', [ids]));

test('erases users page by page, and reports the progress only afterwards', async () => {
  for (const id of [1, 2, 3, 4]) await write(id);
  for (const id of [1, 2, 3]) remove(id);
  follow();
  await until('the users were erased', async () => (await left()).join() === '4');
  await until('the progress was reported', () => asked.includes(3));
});

test('erases what a request stores that began before the deletion', async () => {
  remove(1);
  follow();
  await until('the user was erased', () => asked.includes(1));
  await write(1);
  await until('the late row was erased', async () => (await left()).length === 0);
  expect(await stored()).toBe(0);
});

test('each repetition erases a user once, even if the user was deleted again after a restore', async () => {
  const calls: number[][] = [];
  remove(1);
  remove(1);
  remove(1);
  follow({ readEveryMs: 100, repeatEveryMs: 20, repeatForMs: 600_000 }, async (ids) => void calls.push(ids));
  await until('all pages were read', () => asked.includes(3));
  calls.length = 0;
  await until('the erasure was repeated', () => calls.length > 0);
  expect(calls[0]).toEqual([1]);
});

test('after a crash it erases the users again whose repetitions were not complete', async () => {
  remove(1);
  const stop = follow();
  await until('the user was erased', () => asked.includes(1));
  await stop();
  await write(1);
  asked = [];
  follow();
  await until('the late row was erased', async () => (await left()).length === 0);
  expect(asked[0]).toBe(0);
});

test('stores the position once no request from before the deletion can be left', async () => {
  remove(1);
  remove(2);
  follow({ readEveryMs: 100, repeatEveryMs: 20, repeatForMs: 50 });
  await until('the position was stored', async () => (await stored()) === 2);
  await write(1);
  remove(3);
  await until('the next position was stored', async () => (await stored()) === 3);
  expect(await left()).toEqual([1]);
});

test('reports no progress while the store fails, and continues after auth was unavailable', async () => {
  let isBroken = true;
  await write(1);
  remove(1);
  isAvailable = false;
  follow(undefined, async (ids) => {
    if (isBroken) throw new Error('broken');
    await eraseLetters(ids);
  });
  await until('a failure was logged', () => service.log.some((line) => line.includes('was not erased')));
  isAvailable = true;
  await until('it asks twice', () => asked.length > 1);
  expect(asked).not.toContain(1);
  isBroken = false;
  await until('the user was erased', () => asked.includes(1));
  expect(await left()).toEqual([]);
});
