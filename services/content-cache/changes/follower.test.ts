import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { createLogger, createMetrics } from '@content-platform/chassis';
import { models } from '@content-platform/contract';
import { withDatabase } from '../../../test/support/connections.ts';
import { untilBlocked } from '../../../test/support/locks.ts';
import { until } from '../../../test/support/wait.ts';
import { startCache } from '../cache/testing/caches.ts';
import { heldLoad, loadVersion } from '../cache/testing/loaders.ts';
import type { ContentCache } from '../cache/index.ts';
import { createContentStore } from '../content-store.ts';
import { createInvalidator, type Target, targetName } from '../invalidator.ts';
import { createCacheMetrics } from '../metrics.ts';
import type { TestService } from '../testing/service.ts';
import { read, useTestStores } from '../testing/test-stores.ts';
import { createChangeFeed } from './change-feed.ts';
import { clearUnannouncedChanges, type ChangeFollowerOptions } from './follower.ts';

const world = useTestStores();
let cache: ContentCache;
beforeAll(async () => {
  cache = await startCache(world.redis.url);
});
afterAll(() => cache?.close());

const create = (id: number, title: string) =>
  world.sql(`INSERT INTO content.webform (id, title, body) VALUES ($1, $2, '{}')`, id, title);
const rename = (id: number, title: string) =>
  world.sql('UPDATE content.webform SET title = $2 WHERE id = $1', id, title);
const remove = (id: number) => world.sql('DELETE FROM content.webform WHERE id = $1', id);
const move = (id: number, to: number) =>
  world.sql('UPDATE content.webform SET id = $2 WHERE id = $1', id, to);
const untilNew = (service: TestService, id: number) =>
  until('the new version is read', async () => (await read(service, 'webform', id)).body!.title === 'Two');

test('a change while no process runs becomes visible after the start', async () => {
  const first = await world.service();
  await create(102, 'One');
  await until('it is cached', async () => (await read(first, 'webform', 102)).cache === 'hit');
  await first.stop();
  await rename(102, 'Two');
  const next = await world.service();
  await untilNew(next, 102);
  await next.stop();
});

test('a record that changes all the time does not stay stale', async () => {
  const service = await world.service();
  await create(103, 'One');
  await until('it is cached', async () => (await read(service, 'webform', 103)).cache === 'hit');
  const ending = new AbortController();
  async function write(): Promise<void> {
    while (!ending.signal.aborted) {
      await rename(103, 'Two');
      await sleep(50);
    }
  }
  const writing = write();
  await untilNew(service, 103).finally(() => ending.abort());
  await writing;
  await service.stop();
});

describe('one check', () => {
  /** Checks twice, or until `isLast` returns true. Returns the counted and the cleared records. */
  async function runCheck(
    more: Partial<ChangeFollowerOptions> = {},
    isLast: (checks: number) => boolean | Promise<boolean> = (checks) => checks >= 2,
  ) {
    const cleared: string[] = [];
    const log = { add: (target: Target) => void cleared.push(targetName(target)) };
    let checks = 0;
    let missed = 0;
    const stop = clearUnannouncedChanges({
      database: {
        async transaction(work) {
          const result = await work(world.query);
          checks += 1;
          return result;
        },
      },
      cache,
      invalidator: createInvalidator(log, createCacheMetrics(createMetrics('content-cache'))),
      missed: { add: () => void (missed += 1) },
      logger: createLogger('content-cache', 'silent'),
      timing: { intervalMs: 50, settleMs: 0 },
      ...more,
    });
    await until('the last check has run', () => isLast(checks));
    await stop();
    return { cleared, missed };
  }
  const nothing = { cleared: [], missed: 0 };
  // Each test begins after the changes of the tests before.
  beforeEach(() => runCheck());

  async function cacheVersion(id: number, version: number): Promise<void> {
    await cache.read('webform', id, 'full', loadVersion(version));
    expect((await cache.read('webform', id, 'full', loadVersion(0))).outcome).toBe('hit');
  }
  async function makeStale(id: number): Promise<void> {
    await create(id, 'One');
    await rename(id, 'Two');
    await cacheVersion(id, 1);
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
    await world.sql('DELETE FROM content.record WHERE id IN (201, 1201, 2201)');
    await before();
    await cache.clearRecord('webform', 201);
    await runCheck();
    const readRecord = () => cache.read('webform', 201, 'full', () => records.load('webform', 201, 'full'));
    await readRecord();
    await change();
    expect(await runCheck()).toEqual({ cleared: ['webform:201'], missed: 1 });
    await readRecord();
    expect(await runCheck()).toEqual(nothing);
    await cache.clearRecord('webform', 201);
  });

  test('leaves an entry that is newer than the change', async () => {
    await create(204, 'One');
    await cacheVersion(204, 3);
    expect(await runCheck()).toEqual(nothing);
  });

  test('does not count a record that is cached as missing because it was deleted after the change', async () => {
    await create(213, 'One');
    let isDeleted = false;
    const timing = { intervalMs: 50, settleMs: 500 };
    const result = await runCheck({ timing }, async (checks) => {
      if (checks < 1 || isDeleted) return checks >= 25;
      isDeleted = true;
      await remove(213);
      await cache.clearRecord('webform', 213);
      await cache.read('webform', 213, 'full', () => Promise.resolve(null));
      return false;
    });
    expect(result).toEqual(nothing);
  });

  test('never counts a too large record as stale', async () => {
    await create(205, 'One');
    const large = () => Promise.resolve({ version: 0, payload: 'x'.repeat(300_000) });
    await cache.read('webform', 205, 'full', large);
    expect(await runCheck()).toEqual(nothing);
  });

  test('finds a stale summary', async () => {
    await create(207, 'One');
    await rename(207, 'Two');
    await cache.read('webform', 207, 'summary', loadVersion(1));
    expect(await runCheck()).toEqual({ cleared: ['webform:207'], missed: 1 });
  });

  test('a reader that has read the record before the change does not cache it after the check', async () => {
    await create(208, 'One');
    await runCheck();
    const { load, begun, release } = heldLoad(1);
    const reading = cache.read('webform', 208, 'full', load);
    await begun;
    await rename(208, 'Two');
    expect(await runCheck()).toEqual(nothing);
    release();
    await reading;
    expect((await cache.read('webform', 208, 'full', loadVersion(2))).outcome).toBe('miss');
  });

  test('finds a change of a slow transaction, and does not delay other changes until its commit', async () => {
    await create(209, 'One');
    await create(210, 'One');
    await cacheVersion(209, 1);
    await cacheVersion(210, 1);
    await runCheck();
    await withDatabase(world.databaseUrl, async (slow) => {
      await slow.query(`BEGIN; UPDATE content.webform SET title = 'Two' WHERE id = 209`);
      await rename(210, 'Two');
      expect(await runCheck()).toEqual({ cleared: ['webform:210'], missed: 1 });
      await slow.query('COMMIT');
    });
    expect(await runCheck()).toEqual({ cleared: ['webform:209'], missed: 1 });
  });

  test('repeats a check whose clear failed, and reports when the comparison began', async () => {
    await makeStale(211);
    let [clears, foundAt, clearedAt] = [0, Infinity, 0];
    async function clearRecord(...target: [string, number]) {
      if ((clears += 1) === 1) throw new Error('lost');
      clearedAt = Date.now();
      await sleep(5);
      return cache.clearRecord(...target);
    }
    const missed = { add: (_: unknown, since: Date) => void (foundAt = since.getTime()) };
    const { cleared } = await runCheck({ cache: { ...cache, clearRecord }, missed });
    expect(cleared).toEqual(['webform:211']);
    expect(clears).toBe(2);
    expect(foundAt).toBeLessThanOrEqual(clearedAt);
  });

  const all = models.map((model) => `${model}:*`);
  test.each([
    ['a restore or a failover', `UPDATE content.change_epoch SET origin = ''`],
    ['a TRUNCATE of a model', 'TRUNCATE content.condition'],
    ['a TRUNCATE of all records', 'TRUNCATE content.record'],
  ])('clears everything once after %s', async (_, statement) => {
    const epochOf = async () =>
      (await world.sql<{ epoch: string }>('SELECT epoch FROM content.change_epoch'))[0]!.epoch;
    const before = await epochOf();
    await world.sql(statement);
    const { cleared } = await runCheck();
    expect(new Set([...cleared, ...(await runCheck()).cleared])).toEqual(new Set(all));
    expect(await epochOf()).not.toBe(before);
    expect(await runCheck()).toEqual(nothing);
  });

  test('clears everything after a TRUNCATE that ends during a check of other changes', async () => {
    await makeStale(213);
    const { cleared } = await withDatabase(world.databaseUrl, async (slow) => {
      await slow.query('BEGIN; TRUNCATE content.condition');
      const checked = runCheck();
      await untilBlocked(world);
      await slow.query('COMMIT');
      return checked;
    });
    expect(new Set(cleared)).toEqual(new Set([...all, 'webform:213']));
  });

  test.each<[string, number]>([
    ['restore', 214],
    ['crash', 215],
  ])('forgets the changes that it has read before a %s of PostgreSQL', async (event, id) => {
    let readAt = Infinity;
    const failures: Error[] = [];
    const transaction = async <T>(work: (query: typeof world.query) => Promise<T>) => {
      const failure = failures.pop();
      if (failure) throw failure;
      return work(async (...args) => {
        const result = await world.query<Record<string, unknown> & pg.QueryResultRow>(...args);
        if (readAt === Infinity && args[0] === 'list_changes') {
          readAt = performance.now();
          for (const row of result.rows) row['now'] = '900000000000:900000000000:';
          if (event === 'crash') failures.push(new Error('Connection terminated'));
          // Another process has noticed the restore.
          else await world.sql('UPDATE content.change_epoch SET epoch = gen_random_uuid()');
        }
        return result as never;
      });
    };
    // A second after the first reading: before it, a busy machine may need longer.
    const isLast = () => performance.now() - readAt > 1_000;
    await runCheck({ database: { transaction }, timing: { intervalMs: 50, settleMs: 200 } }, isLast);
    await makeStale(id);
    expect(await runCheck()).toEqual({ cleared: [`webform:${id}`], missed: 1 });
  });

  test('compares changes with transaction ids from before a restore', async () => {
    await create(212, 'One');
    // As restored from a server that had counted further.
    const many = `SELECT 'accesscode', id, 'One', '{}' FROM generate_series(1, 10000) AS id`;
    await world.sql(`INSERT INTO content.record (model, id, title, body) ${many}`);
    await world.sql('ALTER TABLE content.record DISABLE TRIGGER USER');
    await world.sql(`UPDATE content.record SET xid = '900000000000' WHERE id = 212 OR model = 'accesscode'`);
    await world.sql('ALTER TABLE content.record ENABLE TRIGGER USER');
    await world.sql(`UPDATE content.change_epoch SET origin = ''`);
    // Each check rewrites 10,000 records, and the last one begins the epoch.
    await runCheck({ timing: { intervalMs: 60_000, settleMs: 0 } }, (checks) => checks === 1);
    expect(await world.sql('SELECT origin FROM content.change_epoch')).toEqual([{ origin: '' }]);
    await runCheck();
    await cacheVersion(212, 1);
    expect(await runCheck()).toEqual(nothing);
    await rename(212, 'Two');
    expect(await runCheck()).toEqual({ cleared: ['webform:212'], missed: 1 });
  });

  test('clears stale records among thousands of changes, many with one scan', async () => {
    await world.sql(
      `INSERT INTO content.pathway (id, title, body) SELECT id, 'One', '{}' FROM generate_series(1, 2500) AS id`,
    );
    const ids = [...Array.from({ length: 200 }, (_, index) => index + 1), 1_000, 1_001, 2_500];
    for (const id of ids) await cache.read('pathway', id, 'full', loadVersion(0));
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

  test('stops between two pages of a large change', async () => {
    const many = `SELECT id, 'One', '{}' FROM generate_series(3001, 4200) AS id`;
    await world.sql(`INSERT INTO content.webform (id, title, body) ${many}`);
    const stopped = Promise.withResolvers<void>();
    let inspected = 0;
    async function inspect(...record: [string, number]) {
      inspected += 1;
      await stopped.promise;
      return cache.inspect(...record);
    }
    // The immediate runs after runCheck() has called stop().
    const isLast = () => inspected > 0 && Boolean(setImmediate(stopped.resolve));
    await runCheck({ cache: { ...cache, inspect } }, isLast);
    expect(inspected).toBe(100);
  });

  test('only one process checks at a time', async () => {
    await makeStale(206);
    await withDatabase(world.databaseUrl, async (other) => {
      await other.query('SELECT pg_advisory_lock(2026112101)');
      expect(await runCheck()).toEqual(nothing);
    });
    expect(await runCheck()).toEqual({ cleared: ['webform:206'], missed: 1 });
  });
});

test('a first page that waited for a TRUNCATE returns 503, because the client sent no cursor', async () => {
  await withDatabase(world.databaseUrl, async (slow) => {
    await slow.query('BEGIN; TRUNCATE content.condition');
    const first = createChangeFeed(world.query).read(undefined, ['condition'], 1);
    await untilBlocked(world);
    await Promise.all([slow.query('COMMIT'), expect(first).rejects.toMatchObject({ status: 503 })]);
  });
});

test('deletes tombstones after 30 days, notes the newest, and expires the cursors from before it', async () => {
  const { read: readFeed } = createChangeFeed(world.query);
  const { cursor } = await readFeed(undefined, ['condition'], 1_000);
  await world.sql(`INSERT INTO content.tombstone (model, id, version, deleted_at, xid) VALUES
    ('condition', 1, 1, now() - interval '31 days', pg_current_xact_id()), ('condition', 2, 1, now() - interval '29 days', '8')`);
  expect((await readFeed(cursor, ['condition'], 1_000)).changes).toMatchObject([{ id: 1, isDeleted: true }]);
  await world.runRetention();
  await expect(readFeed(cursor, ['condition'], 1_000)).rejects.toThrow('no longer known');
  expect(await world.sql(`SELECT id FROM content.tombstone WHERE model = 'condition' AND id < 3`)).toEqual([
    { id: '2' },
  ]);
  expect(await world.sql(`SELECT purged >= '7'::xid8 AS noted FROM content.change_epoch`)).toEqual([
    { noted: true },
  ]);
});
