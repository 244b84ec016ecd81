import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { until } from '../../test/support/wait.ts';
import { type Proxy, startProxy } from '../../test/support/proxy.ts';
import type { TestService } from './testing/service.ts';
import { read, startWorld, type World } from './testing/world.ts';

let world: World;
let service: TestService;
beforeAll(async () => {
  world = await startWorld();
  service = await world.service();
});
/** To the database; closed also when a test fails, or its connections would outlive it. */
let proxy: Proxy | undefined;
afterEach(async () => {
  await proxy?.close();
  proxy = undefined;
});
afterAll(() => world.close());

const body = { fields: [{ name: 'a "quoted" é 🎈' }], big: 1e300, empty: [] };
let nextId = 1;
async function insert(title = 'A form'): Promise<number> {
  const id = nextId++;
  await world.sql(
    'INSERT INTO content.record (model, id, title, body) VALUES ($1, $2, $3, $4)',
    'webform',
    id,
    title,
    JSON.stringify(body),
  );
  return id;
}

test('a record is a miss, then a hit, and both replies are the same', async () => {
  const id = await insert('Intake "form" ü \\ \u2028');
  const [row] = await world.sql('SELECT updated_at FROM content.record WHERE id = $1', id);
  const first = await read(service, 'webform', id);
  const second = await read(service, 'webform', id);
  expect([first.cache, second.cache]).toEqual(['miss', 'hit']);
  expect(first.body).toEqual({
    model: 'webform',
    id,
    title: 'Intake "form" ü \\ \u2028',
    body,
    version: 1,
    updated_at: (row!['updated_at'] as Date).toISOString(),
  });
  expect(second.body).toEqual(first.body);
  expect(second.etag).toBe(first.etag);
  expect(second.headers.get('cache-control')).toBe('private, no-cache');
  expect(await service.metric('cache_reads_total{model="webform",outcome="hit"}')).toBeGreaterThan(0);
});

test('the summary is the same without body, and is cached by itself', async () => {
  const id = await insert();
  const full = await read(service, 'webform', id);
  const summary = await read(service, 'webform', id, { view: 'summary' });
  expect(summary.cache).toBe('miss');
  const { body: _, ...rest } = full.body as { body: unknown };
  expect(summary.body).toEqual(rest);
  expect(summary.etag).not.toBe(full.etag);
  expect((await read(service, 'webform', id, { view: 'summary' })).cache).toBe('hit');
});

test('any JSON value can be a body', async () => {
  for (const value of ['null', '"text"', '[1,2]', '0', 'true']) {
    const id = nextId++;
    await world.sql(`INSERT INTO content.record VALUES ('webform', $1, '', $2)`, id, value);
    expect((await read(service, 'webform', id)).body).toMatchObject({ body: JSON.parse(value), title: '' });
  }
});

test('a client that has the current record is told so, from the cache and from the database', async () => {
  const id = await insert();
  const { etag } = await read(service, 'webform', id);
  for (const header of [etag!, `W/${etag}`, `"other", ${etag}`, '*']) {
    const answer = await read(service, 'webform', id, { headers: { 'If-None-Match': header } });
    expect([answer.status, answer.cache, answer.etag]).toEqual([304, 'hit', etag]);
  }
  await world.redis.admin.flushall();
  const missed = await read(service, 'webform', id, { headers: { 'If-None-Match': etag! } });
  expect([missed.status, missed.cache]).toEqual([304, 'miss']);
  const other = await read(service, 'webform', id, { headers: { 'If-None-Match': '"other"' } });
  expect(other.status).toBe(200);
});

test('a record that is created again when it was forgotten has another ETag, though its version is the same', async () => {
  const id = await insert();
  const before = await read(service, 'webform', id);
  await world.sql('DELETE FROM content.record WHERE id = $1', id);
  await world.sql('DELETE FROM content.deleted_record WHERE id = $1', id);
  await world.sql(
    `INSERT INTO content.record VALUES ('webform', $1, 'A form', $2)`,
    id,
    JSON.stringify(body),
  );
  await world.redis.admin.flushall();
  const after = await read(service, 'webform', id);
  expect(after.body).toMatchObject({ version: 1 });
  expect(after.etag).not.toBe(before.etag);
});

test('that a record does not exist is cached, too', async () => {
  const first = await read(service, 'condition', 404);
  const second = await read(service, 'condition', 404, { headers: { 'If-None-Match': '*' } });
  expect([first.status, first.error?.error, first.cache]).toEqual([404, 'not_found', 'miss']);
  expect([second.status, second.error?.error, second.cache]).toEqual([404, 'not_found', 'hit']);
});

test('a record can have the highest id there is', async () => {
  const id = Number.MAX_SAFE_INTEGER;
  await world.sql(`INSERT INTO content.record VALUES ('webform', $1, 'Last', '{}')`, id);
  expect((await read(service, 'webform', id)).body).toMatchObject({ id });
});

test.each(['0', '-1', '1.5', '01', '1e3', '9007199254740992', 'abc', '12%20'])('id %s is 422', async (id) => {
  const answer = await call(service.url, contract.readContent, {
    params: { model: 'webform', id },
    token: service.token(),
  });
  expect(answer).toMatchObject({ status: 422, error: { error: 'validation_failed' } });
});

test.each([
  ['letter', {}],
  ['Webform', {}],
  ['webform', { view: 'all' }],
  ['webform', { views: 'full' }],
])('model %s with %j is 422', async (model, query) => {
  const params = { model, id: 1 };
  const answer = await call(service.url, contract.readContent, { params, query, token: service.token() });
  expect(answer).toMatchObject({ status: 422, error: { error: 'validation_failed' } });
});

test('many readers of one record while the database is slow: all are answered, and few of them read it', async () => {
  const id = await insert();
  const loads = 'db_query_duration_seconds_count{service="content-cache",operation="read_record"}';
  await read(service, 'webform', id, { view: 'summary' });
  const before = await service.metric(loads);
  const locker = new pg.Client(world.databaseUrl);
  await locker.connect();
  await locker.query('BEGIN; LOCK TABLE content.record IN ACCESS EXCLUSIVE MODE');
  const reads = Array.from({ length: 100 }, () => read(service, 'webform', id));
  // Longer than their patience, shorter than a statement may take.
  await sleep(600);
  await locker.query('COMMIT');
  await locker.end();
  const answers = await Promise.all(reads);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect((await service.metric(loads)) - before).toBeLessThan(20);
});

test('while Redis hangs, and after it died, reads go on past the cache', async () => {
  const id = await insert();
  await read(service, 'webform', id);
  world.redis.pause();
  const hanging = await read(service, 'webform', id);
  expect([hanging.status, hanging.cache]).toEqual([200, 'bypass']);
  world.redis.resume();
  await world.redis.kill();
  expect((await read(service, 'webform', id)).cache).toBe('bypass');
  expect(await service.check('redis')).toBe(false);
  await world.redis.restart();
});

test('while PostgreSQL is away hits are served, the others are 503, and it is well again by itself', async () => {
  proxy = await startProxy(new URL(world.databaseUrl));
  const through = await world.service({ databaseUrl: proxy.url });
  const [cachedId, otherId] = [await insert(), await insert()];
  // A process that has just found Redis again may pass the cache by at first.
  await until('it is cached', async () => (await read(through, 'webform', cachedId)).cache === 'hit');
  proxy.cut();
  expect((await read(through, 'webform', cachedId)).cache).toBe('hit');
  expect(await read(through, 'webform', otherId)).toMatchObject({
    status: 503,
    error: { error: 'service_unavailable' },
  });
  expect(await through.check('postgres')).toBe(false);
  await proxy.mend();
  await until('it is well again', async () => (await read(through, 'webform', otherId)).status === 200);
  await through.stop();
});

test('while PostgreSQL is silent hits are served, and few of the others wait for it', async () => {
  proxy = await startProxy(new URL(world.databaseUrl));
  const through = await world.service({ databaseUrl: proxy.url });
  const [cachedId, otherId] = [await insert(), await insert()];
  await until('it is cached', async () => (await read(through, 'webform', cachedId)).cache === 'hit');
  const reader = 'db_query_duration_seconds_count{service="content-cache",operation="read_record"}';

  proxy.narrow(0);
  // This one waits until its time is over.
  expect((await read(through, 'webform', otherId)).status).toBe(503);
  const before = await through.metric(reader);
  const refused = await Promise.all(Array.from({ length: 50 }, () => read(through, 'pathway', nextId++)));
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]));
  expect((await through.metric(reader)) - before).toBeLessThan(10);
  expect((await read(through, 'webform', cachedId)).cache).toBe('hit');

  proxy.narrow(Infinity);
  await until('it is well again', async () => (await read(through, 'webform', otherId)).status === 200);
  await through.stop();
});
