import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { useStarted } from '../../test/support/use-started.ts';
import { until, within } from '../../test/support/wait.ts';
import { startProxy } from '../../test/support/proxy.ts';
import { read, useTestStores } from './testing/test-stores.ts';

const world = useTestStores();
const service = useStarted(() => world.service());
beforeAll(async () => {
  await world.sql(
    `INSERT INTO content.record SELECT model, id, 'Old', '{}'
     FROM unnest(ARRAY['webform', 'pathway']) AS model, generate_series(1, 20) AS id`,
  );
});
beforeEach(() => world.redis.admin.flushall());

const clearModel = (id: number, to = service) =>
  call(to.url, contract.clearModel, { body: { model: 'webform', id }, token: to.token('cache:clear') });
const pendingRows = () =>
  world.sql<{ id: string; model: string; record_id: string | null }>(
    'SELECT * FROM content.pending_clear ORDER BY id',
  );

/** A process that has just reconnected to Redis may bypass the cache at first. */
async function warm(id: number, to = service): Promise<void> {
  await until('it is cached', async () => (await read(to, 'webform', id)).cache === 'hit');
}

test('records every clear as a log line and in the metrics', async () => {
  await warm(7);
  await clearModel(7);
  const line = service.log.find(({ message, target }) => message === 'cleared' && target === 'webform:7');
  expect(line).toMatchObject({
    requested_by: 'cms',
    source: 'http',
    keys_deleted: 1,
    request_id: expect.any(String),
  });
  expect(await service.metric('cache_keys_deleted_total{source="http"}')).toBeGreaterThan(0);
  expect(await service.metric('invalidation_delay_seconds_count{source="http"}')).toBeGreaterThan(0);
});

test('lists a clear as soon as its call has returned, and orders the rows of two processes by time', async () => {
  const list = async (query: object) => {
    const token = service.token('jobs:manage');
    return (await call(service.url, contract.listInvalidations, { query: query as never, token })).body!;
  };
  await clearModel(9);
  await clearModel(10);
  const [first] = (await list({ model: 'webform', id: 9 })).items;
  expect(first).toMatchObject({ source: 'http', requested_by: 'cms', target: 'webform:9', keys_deleted: 0 });
  // Another process writes its row later than this one, so an older row has the higher id.
  await world.sql(
    `INSERT INTO content.invalidation (at, source, requested_by, target, keys_deleted)
     VALUES (now() - interval '1 minute', 'http', 'cms', 'webform:9', 0)`,
  );
  const { items } = await list({ model: 'webform', id: 9 });
  expect(items).toHaveLength(2);
  expect(items[0]).toEqual(first);
  expect(items[1]!.id).toBeGreaterThan(first!.id);
  const rest = await list({ model: 'webform', id: 9, limit: 1, cursor: first!.id });
  expect(rest).toEqual({ items: [items[1]], next_cursor: null });
});

test('lists the clears of one model only', async () => {
  await world.sql(
    `INSERT INTO content.invalidation (at, source, requested_by, target, keys_deleted)
     SELECT now(), 'http', 'cms', unnest(ARRAY['pathway:*', 'pathway:3', 'pathways:4', 'path:5', 'pathwaz:6']), 0`,
  );
  const token = service.token('cache:clear');
  const query = { model: 'pathway' } as const;
  const { body } = await call(service.url, contract.listInvalidations, { query, token });
  expect(body!.items.map(({ target }) => target).toSorted()).toEqual(['pathway:*', 'pathway:3']);
});

test('keeps rows for 30 days', async () => {
  await world.sql(
    `INSERT INTO content.invalidation (at, source, requested_by, target, keys_deleted)
     SELECT now() - make_interval(days => days), 'http', 'cms', 'condition:' || days, 0 FROM unnest(ARRAY[29, 31]) AS days`,
  );
  await world.runRetention();
  const kept = await world.sql(`SELECT target FROM content.invalidation WHERE target LIKE 'condition:%'`);
  expect(kept).toEqual([{ target: 'condition:29' }]);
});

test('returns 503 while Redis hangs, stores the clear once per target, and carries it out before the cache is used', async () => {
  await warm(1);
  await warm(2);
  await world.sql(`UPDATE content.record SET title = 'New' WHERE model = 'webform' AND id IN (1, 2)`);
  world.redis.pause();
  const refused = await within('the refusal', clearModel(1));
  expect(refused).toMatchObject({ status: 503, error: { error: 'cache_unavailable' } });
  expect(refused.headers.get('retry-after')).toBe('1');
  await clearModel(1);
  const whole = { body: { pattern: 'webform:*' }, token: service.token('cache:clear') } as const;
  expect((await call(service.url, contract.clearPattern, whole)).status).toBe(503);
  expect((await pendingRows()).map(({ model, record_id }) => [model, record_id])).toEqual([
    ['webform', '1'],
    ['webform', null],
  ]);
  world.redis.resume();
  // The sender no longer retries. No read may use the cache before the clear.
  for (let hits = 0; hits < 3;) {
    const { cache, body } = await read(service, 'webform', 1);
    expect(body).toMatchObject({ title: 'New' });
    if (cache === 'hit') hits += 1;
  }
  expect((await read(service, 'webform', 2)).body).toMatchObject({ title: 'New' });
  expect(await pendingRows()).toEqual([]);
  expect(await service.metric('invalidation_delay_seconds_count{source="pending"}')).toBe(2);
});

test('stores every record of a refused list, and carries them out', async () => {
  const ids = [4, 5, 6];
  for (const id of ids) await warm(id);
  await world.sql(`UPDATE content.record SET title = 'Newer' WHERE model = 'webform' AND id = ANY ($1)`, ids);
  world.redis.pause();
  const body = { model: 'webform' as const, ids: [6, 5, 4, 5] };
  const refused = await call(service.url, contract.clearModel, { body, token: service.token('cache:clear') });
  expect(refused).toMatchObject({ status: 503, error: { error: 'cache_unavailable' } });
  expect((await pendingRows()).map(({ record_id }) => record_id)).toEqual(['4', '5', '6']);
  world.redis.resume();
  await until('they are carried out', async () => (await pendingRows()).length === 0);
  for (const id of ids) expect((await read(service, 'webform', id)).body).toMatchObject({ title: 'Newer' });
});

test('reports refused clears as the queue without Kafka, in every process', async () => {
  const other = await world.service();
  const queues = () => Promise.all([service, other].map((each) => each.metric('invalidation_queue_length')));
  expect(await queues()).toEqual([0, 0]);
  world.redis.pause();
  for (const id of [1, 2, 3]) expect((await clearModel(id)).status).toBe(503);
  expect(await queues()).toEqual([3, 3]);
  expect(await other.metric('invalidation_pending_clears')).toBe(3);
  // 0 without Kafka.
  expect(await other.metric('invalidation_queue_measured_timestamp_seconds')).toBe(0);
  world.redis.resume();
  await until('they are carried out', async () => (await queues()).every((length) => length === 0));
  await other.stop();
});

test('does not use Redis while the stored clears cannot be read', async () => {
  const proxy = await startProxy(new URL(world.databaseUrl));
  const other = await world.service({ databaseUrl: proxy.url });
  try {
    await warm(3, other);
    await world.redis.kill();
    await until('Redis is unavailable', async () => !(await other.check('redis')));
    proxy.cut();
    // PostgreSQL is unreachable, too: the clear is refused and not stored.
    expect(await clearModel(3, other)).toMatchObject({ status: 503, error: { error: 'cache_unavailable' } });
    await world.redis.restart();
    const hasFailed = ({ message, error }: Record<string, unknown>) =>
      String(message).startsWith('Redis unreachable') &&
      /database is unavailable/.test(JSON.stringify(error));
    await until('an attempt failed', () => other.log.some(hasFailed));
    expect(await other.check('redis')).toBe(false);
    await proxy.repair();
    await until('Redis is used again', () => other.check('redis'));
  } finally {
    await other.stop();
    await proxy.close();
  }
});

test('counts evicted keys across a restart of Redis', async () => {
  const fill = async (name: string) => {
    await world.redis.admin.config('SET', 'maxmemory-policy', 'allkeys-lfu');
    const used = Number(/used_memory:(\d+)/.exec(await world.redis.admin.info('memory'))![1]);
    await world.redis.admin.config('SET', 'maxmemory', used + 1_000_000);
    for (let count = 0; count < 40; count += 1)
      await world.redis.admin.set(`${name}:${count}`, Buffer.alloc(100_000));
  };
  const other = await world.service();
  expect(await other.metric('cache_evictions_total')).toBe(0);
  await fill('one');
  const first = await other.metric('cache_evictions_total');
  expect(first).toBeGreaterThan(0);
  await world.redis.kill();
  await world.redis.restart();
  await until('Redis is used again', () => other.check('redis'));
  expect(await other.metric('cache_evictions_total')).toBe(first);
  await fill('two');
  expect(await other.metric('cache_evictions_total')).toBeGreaterThan(first);
  await other.stop();
  await world.redis.admin.config('SET', 'maxmemory', 0);
});

test('two processes carry out many stored clears and remove each once', async () => {
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
    ({ message }) => message === 'pending clears not carried out; retrying',
  );
  expect(warnings).toEqual([]);
  await other.stop();
});
