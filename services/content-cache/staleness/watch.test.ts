import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createLogger, createMetrics, type Database } from '@content-platform/chassis';
import { until } from '../../../test/support/wait.ts';
import { startCache } from '../cache/testing/caches.ts';
import type { ContentCache } from '../cache/index.ts';
import type { InvalidationLog } from '../invalidation-log.ts';
import { createInvalidator } from '../invalidator.ts';
import { createCacheMetrics } from '../metrics.ts';
import { targetName } from '../target.ts';
import { createStalenessWatch, type StalenessWatchOptions } from './watch.ts';
import type { TestService } from '../testing/service.ts';
import { read, startWorld, type World } from '../testing/world.ts';

/** Looks often, and thinks a change announced after a third of a second. */
const staleness = { every: 0.2, settle: 0.3 };

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world?.close());

const title = async (service: TestService, id: number) => {
  const { status, body, cache } = await read(service, 'webform', id);
  return { title: status === 404 ? null : body!.title, cache };
};
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
const missed = (service: TestService) => service.metric('invalidation_missed_total{model="webform"}');

describe('a service that looks', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await world.service({ staleness });
  });
  afterAll(() => service?.stop());

  let id = 100;
  beforeEach(() => void (id += 1));

  test.each<[string, () => Promise<unknown>, () => Promise<unknown>, string | null]>([
    ['a change', () => create(id, 'One'), () => rename(id, 'Two'), 'Two'],
    ['a deletion', () => create(id, 'One'), () => remove(id), null],
    ['a record that had not been there', () => Promise.resolve(), () => create(id, 'One'), 'One'],
    [
      'a record that is made anew',
      () => create(id, 'One'),
      async () => {
        await remove(id);
        await create(id, 'Other');
      },
      'Other',
    ],
    ['a record that gets another key', () => create(id, 'One'), () => move(id, id + 1_000), null],
    [
      'another one that gets its key',
      async () => {
        await create(id, 'One');
        await create(id + 1_000, 'Other');
      },
      async () => {
        await remove(id);
        await move(id + 1_000, id);
      },
      'Other',
    ],
  ])('%s that is not announced is seen and counted once', async (_, before, change, expected) => {
    await before();
    await title(service, id);
    const old = await title(service, id);
    expect(old.cache).toBe('hit');
    const count = await missed(service);
    await change();
    await until('it is read as it is', async () => (await title(service, id)).title === expected);
    expect((await title(service, id)).cache).toBe('hit');
    await until('it is counted', async () => (await missed(service)) > count);
    const [{ source }] = (await until('it is recorded', async () => {
      const rows = await world.sql<{ source: string }>(
        'SELECT source FROM content.invalidation WHERE target = $1',
        `webform:${id}`,
      );
      return rows.length > 0 && rows;
    })) as [{ source: string }];
    expect(source).toBe('watch');
    // Several looks later it is still one.
    const looks = () =>
      service.metric(
        'db_query_duration_seconds_count{service="content-cache",operation="lock_staleness_watch"}',
      );
    const begun = await looks();
    await until('it has looked again', async () => (await looks()) > begun + 3);
    expect(await missed(service)).toBe(count + 1);
  });

  test('both views', async () => {
    await create(id, 'One');
    await read(service, 'webform', id, { view: 'summary' });
    expect((await read(service, 'webform', id, { view: 'summary' })).cache).toBe('hit');
    await rename(id, 'Two');
    await until('the new one is read', async () => {
      const { body } = await read(service, 'webform', id, { view: 'summary' });
      return body!.title === 'Two';
    });
  });

  test('what was changed before the service came', async () => {
    await create(id, 'One');
    await title(service, id);
    await service.stop();
    await rename(id, 'Two');
    service = await world.service({ staleness });
    await until('the new one is read', async () => (await title(service, id)).title === 'Two');
  });
});

describe('a look', () => {
  let cache: ContentCache;
  beforeAll(async () => {
    // Migrates, and goes.
    await (await world.service()).stop();
    cache = await startCache(world.redis.url);
  });
  afterAll(() => cache?.close());

  const logger = createLogger('content-cache', 'silent');
  const database = {
    transaction: <T>(work: (query: Database['query']) => Promise<T>) => work(world.query),
  };

  /** Looks until it has looked twice; says how many were counted and cleared. */
  async function look(more: Partial<StalenessWatchOptions> = {}) {
    const metrics = createCacheMetrics(createMetrics('content-cache'));
    const cleared: string[] = [];
    const invalidator = {
      ...createInvalidator(
        { add: ({ target }) => void cleared.push(targetName(target)) } as InvalidationLog,
        metrics,
      ),
    };
    let looks = 0;
    const counting = {
      transaction: async <T>(work: (query: Database['query']) => Promise<T>) => {
        const result = await database.transaction(work);
        looks += 1;
        return result;
      },
    };
    const stopping = new AbortController();
    const watch = createStalenessWatch({
      database: counting,
      cache,
      invalidator,
      pending: { isFor: () => Promise.resolve(false) },
      isQueueEmpty: () => Promise.resolve(true),
      metrics,
      logger,
      ttlSeconds: 300,
      timing: { every: 0.05, settle: 0 },
      ...more,
    });
    const running = watch.run(stopping.signal);
    await until('it has looked twice', () => looks >= 2);
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

  test('what is old is cleared and counted', async () => {
    await stale(201);
    expect(await look()).toEqual({ cleared: ['webform:201'], missed: 1 });
  });

  test.each<[string, Partial<StalenessWatchOptions>]>([
    ['in the queue', { isQueueEmpty: () => Promise.resolve(false) }],
    ['a clear that was refused and waits', { pending: { isFor: () => Promise.resolve(true) } }],
  ])('what is announced already, %s, is cleared and not counted', async (_, options) => {
    await stale(202);
    expect(await look(options)).toEqual({ cleared: ['webform:202'], missed: 0 });
    await remove(202);
    await cache.clearModel('webform', 202);
  });

  test('what is announced while it looks is not counted', async () => {
    await stale(203);
    const isQueueEmpty = async () => {
      await cache.clearModel('webform', 203);
      return true;
    };
    expect(await look({ isQueueEmpty })).toEqual({ cleared: [], missed: 0 });
  });

  test('what is changed again while it looks is left for the next look', async () => {
    await create(204, 'One');
    await rename(204, 'Two');
    // Newer than what the look has read.
    await cached(204, 3);
    const isQueueEmpty = async () => {
      await rename(204, 'Three');
      return true;
    };
    expect(await look({ isQueueEmpty })).toEqual({ cleared: [], missed: 0 });
  });

  test('what is too large for the cache is never old', async () => {
    await create(205, 'One');
    const large = () => Promise.resolve({ version: 7, payload: 'x'.repeat(300_000) });
    await cache.read('webform', 205, 'full', large);
    expect(await look()).toEqual({ cleared: [], missed: 0 });
  });

  test('thousands of changes', async () => {
    await world.sql(
      `INSERT INTO content.record (model, id, title, body, version)
       SELECT 'pathway', id, 'One', '{}', 1 FROM generate_series(1, 2500) AS id`,
    );
    for (const id of [1, 1_000, 1_001, 2_500]) await cache.read('pathway', id, 'full', load(7));
    const { cleared, missed } = await look();
    expect(cleared.toSorted()).toEqual(['pathway:1', 'pathway:1000', 'pathway:1001', 'pathway:2500']);
    expect(missed).toBe(4);
  });

  test('only one process looks at a time', async () => {
    await stale(206);
    const other = new pg.Client(world.databaseUrl);
    await other.connect();
    await other.query('SELECT pg_advisory_lock(2026112101)');
    expect(await look()).toEqual({ cleared: [], missed: 0 });
    await other.end();
    expect(await look()).toEqual({ cleared: ['webform:206'], missed: 1 });
  });

  test('deletions are forgotten after a day', async () => {
    await world.sql(`INSERT INTO content.deleted_record VALUES
      ('condition', 1, now() - interval '25 hours'), ('condition', 2, now() - interval '23 hours')`);
    await look();
    expect(await world.sql(`SELECT id FROM content.deleted_record WHERE model = 'condition'`)).toEqual([
      { id: '2' },
    ]);
  });
});
