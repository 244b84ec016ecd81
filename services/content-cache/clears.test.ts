import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { until } from '../../test/support/wait.ts';
import { startProxy } from '../../test/support/proxy.ts';
import type { TestService } from './testing/service.ts';
import { read, startWorld, type World } from './testing/world.ts';

let world: World;
let service: TestService;
beforeAll(async () => {
  world = await startWorld();
  service = await world.service();
  await world.sql(
    `INSERT INTO content.record SELECT model, id, 'Old', '{}'
     FROM unnest(ARRAY['webform', 'pathway']) AS model, generate_series(1, 20) AS id`,
  );
});
beforeEach(() => world.redis.admin.flushall());
afterAll(() => world.close());

const clearModel = (id: number, to = service, token = to.token('cache:clear')) =>
  call(to.url, contract.clearModel, { body: { model: 'webform', id }, token });
const clearPattern = (pattern: string, to = service) =>
  call(to.url, contract.clearPattern, {
    body: { pattern: pattern as 'webform:*' },
    token: to.token('cache:clear'),
  });
const pendingRows = () =>
  world.sql<{ id: string; model: string; record_id: string | null }>(
    'SELECT * FROM content.pending_clear ORDER BY id',
  );

/** A process that has just found Redis again may pass the cache by at first. */
async function warm(id: number, to = service): Promise<void> {
  await until('it is cached', async () => (await read(to, 'webform', id)).cache === 'hit');
}

test('a clear counts one key for each cached view and each unmanaged key', async () => {
  await warm(1);
  await read(service, 'webform', 1, { view: 'summary' });
  await world.redis.admin.mset('webform:1:menu', 'x', 'webform:12:menu', 'x', 'webform:1x', 'x');
  const answer = await clearModel(1);
  expect(answer).toMatchObject({ status: 200, body: { success: true, keys_deleted: 3 } });
  expect((await read(service, 'webform', 1)).cache).toBe('miss');
  expect(await world.redis.admin.exists('webform:12:menu', 'webform:1x')).toBe(2);
});

test('a pattern clears its model alone', async () => {
  await warm(1);
  await warm(2);
  await read(service, 'pathway', 1);
  const answer = await clearPattern('webform:*');
  expect(answer).toMatchObject({ status: 200, body: { success: true, keys_deleted: 2 } });
  expect((await read(service, 'webform', 2)).cache).toBe('miss');
  expect((await read(service, 'pathway', 1)).cache).toBe('hit');
});

test.each(['*', 'web*:*', 'webform:1*', 'letter:*', 'webform:**', ''])(
  'the pattern "%s" is 422 and clears nothing',
  async (pattern) => {
    await warm(1);
    expect(await clearPattern(pattern)).toMatchObject({ status: 422 });
    expect((await read(service, 'webform', 1)).cache).toBe('hit');
  },
);

test('without cache:clear it is 403, and nothing is cleared', async () => {
  await warm(1);
  const token = service.token('jobs:manage');
  expect(await clearModel(1, service, token)).toMatchObject({
    status: 403,
    error: { error: 'insufficient_scope' },
  });
  expect((await read(service, 'webform', 1)).cache).toBe('hit');
});

test.each([
  '{"model":"webform","id":0}',
  '{"model":"webform","id":-1}',
  '{"model":"webform","id":1.5}',
  '{"model":"webform","id":"1"}',
  '{"model":"webform","id":9007199254740992}',
  '{"model":"webform","id":null}',
  '{"model":"letter","id":1}',
  '{"model":["webform"],"id":1}',
  '{"model":"webform","id":1,"view":"full"}',
  '{"model":"webform","id":1,"__proto__":{"id":2}}',
  '{"__proto__":{"model":"webform","id":1}}',
  '[]',
  'null',
])('the body %s is 422 and clears nothing', async (body) => {
  await warm(1);
  const answer = await fetch(`${service.url}${contract.clearModel.path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${service.token('cache:clear')}`, 'Content-Type': 'application/json' },
    body,
  });
  expect([answer.status, await answer.json()]).toMatchObject([422, { error: 'validation_failed' }]);
  expect((await read(service, 'webform', 1)).cache).toBe('hit');
});

test('every clear is a log line and a row', async () => {
  await warm(7);
  await clearModel(7);
  const line = service.log.find(({ message, target }) => message === 'cleared' && target === 'webform:7');
  expect(line).toMatchObject({
    requested_by: 'cms',
    source: 'http',
    keys_deleted: 1,
    request_id: expect.any(String),
  });
  const rows = await until('the row is there', async () => {
    const found = await world.sql(`SELECT * FROM content.invalidation WHERE target = 'webform:7'`);
    return found.length > 0 ? found : undefined;
  });
  expect(rows).toMatchObject([{ requested_by: 'cms', source: 'http', keys_deleted: '1' }]);
  expect(await service.metric('cache_keys_deleted_total{source="http"}')).toBeGreaterThan(0);
  expect(await service.metric('invalidation_delay_seconds_count{source="http"}')).toBeGreaterThan(0);
});

test('what is left of the rows is written when the process stops', async () => {
  const other = await world.service();
  await clearModel(8, other);
  await other.stop();
  expect(await world.sql(`SELECT FROM content.invalidation WHERE target = 'webform:8'`)).toHaveLength(1);
});

test('rows are kept for 30 days', async () => {
  await world.sql(
    `INSERT INTO content.invalidation (at, source, requested_by, target, keys_deleted)
     SELECT now() - make_interval(days => days), 'http', 'cms', 'condition:' || days, 0 FROM unnest(ARRAY[29, 31]) AS days`,
  );
  const other = await world.service();
  const kept = () => world.sql(`SELECT target FROM content.invalidation WHERE target LIKE 'condition:%'`);
  await until('the old row is gone', async () => (await kept()).length === 1);
  expect(await kept()).toEqual([{ target: 'condition:29' }]);
  await other.stop();
});

test('a clear that Redis hangs on is 503 in time, noted once for its target, and carried out before the cache is used', async () => {
  await warm(1);
  await warm(2);
  await world.sql(`UPDATE content.record SET title = 'New' WHERE model = 'webform' AND id IN (1, 2)`);
  world.redis.pause();
  const start = performance.now();
  const refused = await clearModel(1);
  expect(performance.now() - start).toBeLessThan(3_000);
  expect(refused).toMatchObject({ status: 503, error: { error: 'cache_unavailable' } });
  expect(refused.headers.get('retry-after')).toBe('1');
  await clearModel(1);
  expect((await clearPattern('webform:*')).status).toBe(503);
  expect((await pendingRows()).map(({ model, record_id }) => [model, record_id])).toEqual([
    ['webform', '1'],
    ['webform', null],
  ]);
  world.redis.resume();
  // The sender has given up. No read may be served from the cache before it is cleared.
  for (let hits = 0; hits < 3;) {
    const { cache, body } = await read(service, 'webform', 1);
    expect(body).toMatchObject({ title: 'New' });
    if (cache === 'hit') hits += 1;
  }
  expect((await read(service, 'webform', 2)).body).toMatchObject({ title: 'New' });
  expect(await pendingRows()).toEqual([]);
  expect(await service.metric('invalidation_delay_seconds_count{source="pending"}')).toBe(2);
});

test('the cache is not used while it cannot be known what waits to be cleared', async () => {
  const proxy = await startProxy(new URL(world.databaseUrl));
  const other = await world.service({ databaseUrl: proxy.url });
  try {
    await warm(3, other);
    await world.redis.kill();
    await until('Redis is away', async () => !(await other.check('redis')));
    proxy.cut();
    // PostgreSQL is away, too: refused all the same, and not acknowledged.
    expect(await clearModel(3, other)).toMatchObject({ status: 503, error: { error: 'cache_unavailable' } });
    await world.redis.restart();
    await until('it was tried', () =>
      other.log.some(({ error }) =>
        /database does not answer/.test((error as Error | undefined)?.message ?? ''),
      ),
    );
    expect(await other.check('redis')).toBe(false);
    await proxy.mend();
    await until('Redis is used again', () => other.check('redis'));
  } finally {
    await other.stop();
    await proxy.close();
  }
});

test('what another process could not clear is cleared by this one', async () => {
  await warm(4);
  await world.sql(
    `INSERT INTO content.pending_clear (model, record_id, requested_by, source) VALUES ('webform', 4, 'cms', 'http')`,
  );
  await until('it is carried out', async () => (await pendingRows()).length === 0);
  expect((await read(service, 'webform', 4)).cache).toBe('miss');
});

test('two processes carry out many, each once removed', async () => {
  await world.redis.kill();
  const other = await world.service();
  const before = service.log.length;
  await Promise.all(
    Array.from({ length: 60 }, (_, id) => clearModel(100 + (id % 40), id % 2 ? service : other)),
  );
  expect(await pendingRows()).toHaveLength(40);
  await world.redis.restart();
  await until('all are carried out', async () => (await pendingRows()).length === 0);
  const warnings = [...service.log.slice(before), ...other.log].filter(
    ({ message }) => message === 'pending clears wait',
  );
  expect(warnings).toEqual([]);
  await other.stop();
});
