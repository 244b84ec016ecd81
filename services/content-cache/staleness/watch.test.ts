import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createLogger, createMetrics } from '@content-platform/chassis';
import { until } from '../../../test/support/wait.ts';
import { startCache } from '../cache/testing/caches.ts';
import type { ContentCache } from '../cache/index.ts';
import { createContentStore } from '../content-store.ts';
import type { InvalidationLog } from '../invalidation-log.ts';
import { createInvalidator } from '../invalidator.ts';
import { createCacheMetrics } from '../metrics.ts';
import { targetName } from '../target.ts';
import { createStalenessWatch, type StalenessWatchOptions } from './watch.ts';
import { read, startWorld, type World } from '../testing/world.ts';

let world: World;
let cache: ContentCache;
beforeAll(async () => {
  world = await startWorld();
  cache = await startCache(world.redis.url);
});
afterAll(async () => {
  await cache?.close();
  await world?.close();
});

const create = (id: number, title: string) =>
  world.sql(
    `INSERT INTO content.record (model, id, title, body, version) VALUES ('webform', $1, $2, '{}', 1)`,
    id,
    title,
  );
const rename = (id: number, title: string) =>
  world.sql(`UPDATE content.record SET title = $2 WHERE model = 'webform' AND id = $1`, id, title);
const remove = (id: number) =>
  world.sql(`DELETE FROM content.record WHERE model = 'webform' AND id = $1`, id);
const move = (id: number, to: number) =>
  world.sql(`UPDATE content.record SET id = $2 WHERE model = 'webform' AND id = $1`, id, to);

test('the service clears, records and counts a change that is not announced', async () => {
  const service = await world.service({ staleness: { intervalSeconds: 0.2, settleSeconds: 0.3 } });
  await create(101, 'One');
  await until('it is cached', async () => (await read(service, 'webform', 101)).cache === 'hit');
  await rename(101, 'Two');
  await until('the new record is read', async () => {
    const { body } = await read(service, 'webform', 101);
    return body!.title === 'Two';
  });
  expect(await service.metric('invalidation_missed_total{model="webform"}')).toBe(1);
  // Writes the queued rows.
  await service.stop();
  const rows = await world.sql(`SELECT source FROM content.invalidation WHERE target = 'webform:101'`);
  expect(rows).toEqual([{ source: 'watch' }]);
});

describe('one check', () => {
  /** Checks twice. Returns the counted and the cleared records. */
  async function runCheck(more: Partial<StalenessWatchOptions> = {}) {
    const metrics = createCacheMetrics(createMetrics('content-cache'));
    const cleared: string[] = [];
    const log = { add: ({ target }) => void cleared.push(targetName(target)) } as InvalidationLog;
    let checks = 0;
    const stopping = new AbortController();
    const watch = createStalenessWatch({
      database: {
        async transaction(work) {
          const result = await work(world.query);
          checks += 1;
          return result;
        },
      },
      cache,
      invalidator: createInvalidator(log, metrics),
      pending: { among: () => Promise.resolve(new Set<string>()) },
      isQueueEmpty: () => Promise.resolve(true),
      metrics,
      logger: createLogger('content-cache', 'silent'),
      ttlSeconds: 300,
      timing: { intervalSeconds: 0.05, settleSeconds: 0 },
      ...more,
    });
    const running = watch.run(stopping.signal);
    await until('two checks have run', () => checks >= 2);
    stopping.abort();
    await running;
    const { values } = await metrics.missed.get();
    return { cleared, missed: values.reduce((sum, { value }) => sum + value, 0) };
  }

  const load = (version: number) => () => Promise.resolve({ version, payload: `{"version":${version}}` });
  async function cached(id: number, version: number): Promise<void> {
    await cache.read('webform', id, 'full', load(version));
    expect((await cache.read('webform', id, 'full', load(0))).outcome).toBe('hit');
  }
  async function stale(id: number): Promise<void> {
    await create(id, 'One');
    await rename(id, 'Two');
    await cached(id, 1);
  }

  test.each<[string, () => Promise<unknown>, () => Promise<unknown>]>([
    ['a change', () => create(201, 'One'), () => rename(201, 'Two')],
    ['a deletion', () => create(201, 'One'), () => remove(201)],
    ['a new record', () => Promise.resolve(), () => create(201, 'One')],
    ['a new key', () => create(201, 'One'), () => move(201, 1_201)],
    ['a recreated record', () => create(201, 'One'), () => remove(201).then(() => create(201, 'Other'))],
    [
      'another record with its key',
      () => create(201, 'One').then(() => create(2_201, 'Other')),
      () => remove(201).then(() => move(2_201, 201)),
    ],
  ])('clears and counts the stale entry of %s once', async (_, before, change) => {
    const records = createContentStore(world.query);
    await world.sql('TRUNCATE content.record, content.deleted_record');
    await before();
    const read = () => cache.read('webform', 201, 'full', () => records.load('webform', 201, 'full'));
    await read();
    await change();
    expect(await runCheck()).toEqual({ cleared: ['webform:201'], missed: 1 });
    await read();
    expect(await runCheck()).toEqual({ cleared: [], missed: 0 });
    await cache.clearModel('webform', 201);
  });

  test.each<[string, Partial<StalenessWatchOptions>]>([
    ['in the queue', { isQueueEmpty: () => Promise.resolve(false) }],
    ['a stored clear', { pending: { among: () => Promise.resolve(new Set(['webform:202'])) } }],
  ])('clears but does not count an entry whose announcement is %s', async (_, options) => {
    await stale(202);
    expect(await runCheck(options)).toEqual({ cleared: ['webform:202'], missed: 0 });
    await remove(202);
    await cache.clearModel('webform', 202);
  });

  test('does not count an entry that is announced during the check', async () => {
    await stale(203);
    const isQueueEmpty = async () => {
      await cache.clearModel('webform', 203);
      return true;
    };
    expect(await runCheck({ isQueueEmpty })).toEqual({ cleared: [], missed: 0 });
  });

  test('leaves a record that changes during the check to the next check', async () => {
    await create(204, 'One');
    await rename(204, 'Two');
    // Newer than the version that the check has read.
    await cached(204, 3);
    const isQueueEmpty = async () => {
      await rename(204, 'Three');
      return true;
    };
    expect(await runCheck({ isQueueEmpty })).toEqual({ cleared: [], missed: 0 });
  });

  test('never counts a too large record as stale', async () => {
    await create(205, 'One');
    const large = () => Promise.resolve({ version: 7, payload: 'x'.repeat(300_000) });
    await cache.read('webform', 205, 'full', large);
    expect(await runCheck()).toEqual({ cleared: [], missed: 0 });
  });

  test('finds a stale summary', async () => {
    await create(207, 'One');
    await rename(207, 'Two');
    await cache.read('webform', 207, 'summary', load(1));
    expect(await runCheck()).toEqual({ cleared: ['webform:207'], missed: 1 });
  });

  test('clears stale records among thousands of changes, many with one scan', async () => {
    await world.sql(
      `INSERT INTO content.record (model, id, title, body, version)
       SELECT 'pathway', id, 'One', '{}', 1 FROM generate_series(1, 2500) AS id`,
    );
    const ids = [...Array.from({ length: 200 }, (_, index) => index + 1), 1_000, 1_001, 2_500];
    for (const id of ids) await cache.read('pathway', id, 'full', load(7));
    await world.redis.admin.set('pathway:200:of-another-program', 'x');
    const scans = async () => {
      const [, calls = '0'] =
        /cmdstat_scan:calls=(\d+)/.exec(await world.redis.admin.info('commandstats')) ?? [];
      return Number(calls);
    };
    const before = await scans();
    const { cleared, missed } = await runCheck();
    expect(new Set(cleared)).toEqual(new Set(ids.map((id) => `pathway:${id}`)));
    expect([cleared.length, missed]).toEqual([203, 203]);
    // Each scan is a few calls: 203 scans would be at least 203.
    expect((await scans()) - before).toBeLessThan(100);
    expect(await world.redis.admin.keys('pathway:*')).toEqual([]);
  });

  test('only one process checks at a time', async () => {
    await stale(206);
    const other = new pg.Client(world.databaseUrl);
    await other.connect();
    await other.query('SELECT pg_advisory_lock(2026112101)');
    expect(await runCheck()).toEqual({ cleared: [], missed: 0 });
    await other.end();
    expect(await runCheck()).toEqual({ cleared: ['webform:206'], missed: 1 });
  });

  test('deletes the rows of deletions after a day', async () => {
    await world.sql(`INSERT INTO content.deleted_record VALUES
      ('condition', 1, now() - interval '25 hours'), ('condition', 2, now() - interval '23 hours')`);
    await runCheck();
    expect(await world.sql(`SELECT id FROM content.deleted_record WHERE model = 'condition'`)).toEqual([
      { id: '2' },
    ]);
  });
});
