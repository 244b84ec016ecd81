import { beforeEach, expect, test } from '@jest/globals';
import { createCacheClearer } from './cache-clearer.ts';
import type { CacheConnection, CacheNode } from '../connection.ts';
import type { ContentCache } from '../index.ts';
import { closedAfterEach, whileRefusing } from '../testing/closed-after-each.ts';
import { loadNothing, loadVersion } from '../testing/loaders.ts';
import { startRedis } from '../../../../test/support/redis-server.ts';
import { useStarted } from '../../../../test/support/use-started.ts';
import { until } from '../../../../test/support/wait.ts';

const started = closedAfterEach();
const redis = useStarted(startRedis);
let cache: ContentCache;
let connection: CacheConnection;

beforeEach(async () => {
  await redis.admin.flushall();
  cache = await started.cache(redis.url);
  connection = await started.connection(redis.url);
});

const put = (...keys: string[]) => redis.admin.mset(keys.flatMap((key) => [key, 'theirs']));
const words = (text: string) => text.split(' ');
const keysLeft = async () => (await redis.admin.keys('*')).toSorted();

/** Clears through the real node, and runs `afterScan` before each page of SCAN is returned. */
function clearerWith(afterScan: (glob: string) => Promise<void>) {
  const slowed = (node: CacheNode): CacheNode => ({
    ...node,
    async scan(cursor, glob) {
      const page = await node.scan(cursor, glob);
      await afterScan(glob);
      return page;
    },
  });
  return createCacheClearer({ ...connection, primaries: () => connection.primaries().map(slowed) }, 'sweep');
}

/** Counts the scans that started during `work`, by the server's MONITOR. */
async function scansDuring(work: () => Promise<unknown>): Promise<number> {
  const monitor = await redis.admin.monitor();
  let scans = 0;
  let last = '';
  monitor.on('monitor', (_time: string, args: string[]) => {
    if (args[0]?.toLowerCase() === 'scan' && args[1] === '0') scans += 1;
    last = args.join(' ');
  });
  await work();
  await redis.admin.echo('the end of the work');
  await until('the monitor has seen every command', () => last === 'echo the end of the work');
  monitor.disconnect();
  return scans;
}

test("deletes both views and other programs' keys of exactly this record", async () => {
  await cache.read('webform', 1, 'full', loadVersion(1));
  await cache.read('webform', 1, 'summary', loadVersion(1));
  await cache.read('webform', 12, 'full', loadVersion(1));
  const others =
    'web:1:a webform webform: webform:01:a webform:10 webform:12:a webform:1x webform:1x:a webform::1';
  await put(...words(`webform:1:a webform:1: webform:1:a:b ${others} xwebform:1:a`));

  expect(await cache.clearRecord('webform', 1)).toBe(2 + 3);
  expect(await keysLeft()).toEqual(words(`webform:12 ${others} xwebform:1:a`).toSorted());
});

test('deletes exactly the keys of a model', async () => {
  await cache.read('webform', 1, 'full', loadVersion(1));
  await cache.read('webform', 1, 'summary', loadVersion(1));
  await cache.read('webform', 2, 'full', async () => null);
  await cache.read('pathway', 1, 'full', loadVersion(1));
  const theirs = 'pathway:1:a webform webformx:1 xwebform:1';
  await put(...words(`webform:3 webform:1:a webform:x webform: ${theirs}`));
  await redis.admin.rpush('webform:4', 'theirs');

  expect(await cache.clearPattern('webform')).toBe(3 + 5);
  expect(await keysLeft()).toEqual(words(`pathway:1 ${theirs}`));
  expect(await cache.clearPattern('webform')).toBe(0);
});

test('clearing a model deletes its leases, so that readers with a lease cannot fill', async () => {
  await cache.read('webform', 12, 'full', async () => {
    expect(await cache.clearPattern('webform')).toBe(0);
    return { version: 1, payload: '{}' };
  });
  expect(await cache.read('webform', 12, 'full', loadVersion(2))).toMatchObject({ outcome: 'miss' });
});

test.each(['web*', 'we?form', 'web[f]orm', String.raw`web\form`, 'web^-form'])(
  'treats %s literally, not as a pattern',
  async (model) => {
    await put(`${model}:1:a`, `${model}:2:a`, 'webform:1:a', 'webXform:1:a', 'webf:1:a', 'webff:1:a');
    expect(await cache.clearRecord(model, 1)).toBe(1);
    expect(await cache.clearPattern(model)).toBe(1);
    expect(await keysLeft()).toEqual(['webXform:1:a', 'webf:1:a', 'webff:1:a', 'webform:1:a']);
  },
);

test('deletes keys that are not UTF-8', async () => {
  const key = Buffer.from([...Buffer.from('webform:12:'), 0xff, 0x00, 0xfe, 0x0a, 0xc3]);
  await redis.admin.set(key, 'theirs');
  expect(await cache.clearRecord('webform', 12)).toBe(1);
  await redis.admin.set(key, 'theirs');
  expect(await cache.clearPattern('webform')).toBe(1);
  expect(await keysLeft()).toEqual([]);
});

test('counts 10,000 unmanaged keys among as many others exactly', async () => {
  const numbers = Array.from({ length: 10_000 }, (_, index) => index);
  await put(...numbers.map((n) => `webform:12:${n}`));
  await put(...numbers.map((n) => `webform:123:${n}`));
  expect(await cache.clearRecord('webform', 12)).toBe(10_000);
  expect(await redis.admin.dbsize()).toBe(10_000);
  expect(await cache.clearPattern('webform')).toBe(10_000);
  expect(await redis.admin.dbsize()).toBe(0);
});

test('CACHE_UNMANAGED_KEYS=none clears only our own keys, without a scan', async () => {
  const alone = await started.cache(redis.url, { unmanagedKeys: 'none' });
  await alone.read('webform', 12, 'full', loadVersion(1));
  await put('webform:12:a');
  const scans = await scansDuring(async () => expect(await alone.clearRecord('webform', 12)).toBe(1));
  expect(scans).toBe(0);
  expect(await keysLeft()).toEqual(['webform:12:a']);
});

test('concurrent clears share sweeps, and their counts add up', async () => {
  const ids = Array.from({ length: 100 }, (_, index) => index + 1);
  await put(...ids.flatMap((id) => [`webform:${id}:a`, `webform:${id}:b`, `pathway:${id}:a`]));
  await cache.read('webform', 1, 'full', loadVersion(1));
  let counts: number[] = [];
  const scans = await scansDuring(async () => {
    counts = await Promise.all([
      ...ids.map((id) => cache.clearRecord('webform', id)),
      ...ids.map((id) => cache.clearRecord('webform', id)),
      cache.clearPattern('pathway'),
    ]);
  });
  expect(scans).toBeLessThanOrEqual(3);
  expect(counts.reduce((sum, count) => sum + count)).toBe(301);
  expect(counts.at(-1)).toBe(100);
  expect(await keysLeft()).toEqual([]);
});

test('clears many records with one scan, and counts the keys of each', async () => {
  const ids = Array.from({ length: 1_000 }, (_, index) => index + 1);
  await put('webform:2:a', 'webform:1000:a', 'webform:1000:b', 'webform:1001:a', 'pathway:2:a');
  await cache.read('webform', 1, 'full', loadVersion(1));
  await cache.read('webform', 2, 'full', loadVersion(1));
  let counts: number[] = [];
  const scans = await scansDuring(async () => void (counts = await cache.clearRecords('webform', ids)));
  expect(scans).toBe(1);
  expect(counts.slice(0, 3)).toEqual([1, 2, 0]);
  expect(counts.at(-1)).toBe(2);
  expect(await keysLeft()).toEqual(['pathway:2:a', 'webform:1001:a']);
});

test("deletes exactly the records' keys in a shared sweep", async () => {
  const others = ['pathway:2:a', 'web:2:a', 'webform:23:a', 'webform:2x:a', 'webform:3'];
  await put('webform:1:a', 'webform:2:a', 'webform:2:b', 'webform:3:a', ...others);
  const counts = await Promise.all([1, 2, 3].map((id) => cache.clearRecord('webform', id)));
  expect(counts).toEqual([1, 2, 2]);
  expect(await keysLeft()).toEqual(others.slice(0, -1));
  await put('webform:4:a', 'webform:5:a', 'pathway:6:a');
  const webforms = [4, 5].map((id) => cache.clearRecord('webform', id));
  expect(await Promise.all([...webforms, cache.clearRecord('pathway', 6)])).toEqual([1, 1, 1]);
  expect(await keysLeft()).toEqual(others.slice(0, -1));
});

test('does not join a running sweep, which may have passed the key', async () => {
  let sweeps = 0;
  const passed = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const clearer = clearerWith(async () => {
    sweeps += 1;
    if (sweeps > 1) return;
    passed.resolve();
    await goOn.promise;
  });
  const first = clearer.clearRecord('webform', 12);
  await passed.promise;
  await put('webform:12:late');
  const later = Promise.all([clearer.clearRecord('webform', 12), clearer.clearRecord('webform', 13)]);
  goOn.resolve();
  expect(await first).toBe(0);
  expect(await later).toEqual([1, 0]);
  expect(sweeps).toBe(2);
});

test('refuses a sweep during which Redis was restarted; the next sweep succeeds', async () => {
  let restarts = 0;
  const clearer = clearerWith(async () => {
    if (restarts++ > 0) return;
    await redis.kill();
    await redis.restart();
    await until('the connection is usable again', () => connection.state === 'usable');
  });
  await expect(clearer.clearRecord('webform', 12)).rejects.toMatchObject({ name: 'CacheRefused' });
  expect(await clearer.clearRecord('webform', 12)).toBe(0);
});

test('a refused clear of a model has deleted nothing', async () => {
  await cache.read('webform', 12, 'full', loadVersion(1));
  await whileRefusing(redis, () =>
    expect(cache.clearPattern('webform')).rejects.toMatchObject({ name: 'CacheRefused' }),
  );
  expect(await cache.read('webform', 12, 'full', loadNothing)).toMatchObject({ outcome: 'hit' });
  expect(await cache.clearPattern('webform')).toBe(1);
});
