import { setTimeout as sleep } from 'node:timers/promises';
import { tracingChannel } from 'node:diagnostics_channel';
import { beforeEach, expect, test } from '@jest/globals';
import type { CacheState, ContentCache, ContentCacheOptions } from '../index.ts';
import { protocolScripts } from '../testing/caches.ts';
import { closedAfterEach } from '../testing/closed-after-each.ts';
import { loadNothing, loadVersion } from '../testing/loaders.ts';
import type { RedisServer } from '../../../../test/support/redis-server.ts';
import { until } from '../../../../test/support/wait.ts';
import { startProxy, type Proxy } from '../../../../test/support/proxy.ts';

const started = closedAfterEach();
let redis: RedisServer;
beforeEach(async () => {
  redis = await started.server();
});
const start = (options: Partial<ContentCacheOptions> = {}, url = redis.url) => started.cache(url, options);

const untilState = (cache: ContentCache, state: CacheState) =>
  until(`the cache is ${state}`, () => cache.state === state);

const ourClients = async () => {
  const list = String(await redis.admin.client('LIST'));
  const own = await redis.admin.client('ID');
  return [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => Number(id)).filter((id) => id !== own);
};

test('bypasses a Redis that is unreachable at the start, refuses clears, and uses Redis later', async () => {
  await redis.kill();
  const cache = await start();
  expect(cache.state).toBe('unavailable');
  const read = await cache.read('webform', 12, 'full', loadVersion(1));
  expect(read).toMatchObject({
    outcome: 'bypass',
    reason: { message: expect.stringContaining('ECONNREFUSED') },
  });
  await expect(cache.clearRecord('webform', 12)).rejects.toMatchObject({ name: 'CacheUnavailable' });
  await expect(cache.clearPattern('webform')).rejects.toMatchObject({ name: 'CacheUnavailable' });
  await expect(cache.memory()).rejects.toMatchObject({ name: 'CacheUnavailable' });

  await redis.restart();
  await untilState(cache, 'usable');
  expect(await cache.read('webform', 12, 'full', loadVersion(1))).toMatchObject({ outcome: 'miss' });
});

test('refuses to start if the server does not know script flags', async () => {
  const scripts = { ...protocolScripts, incarnation: '#not lua, as #!lua is not to Redis 6' };
  await expect(start({ scripts })).rejects.toMatchObject({
    name: 'UnsupportedRedis',
    message: expect.stringMatching(/^.*7.*$/),
  });
});

test('starts with a wrong password, and reports the reason', async () => {
  await redis.admin.config('SET', 'requirepass', 'secret');
  const reasons: string[] = [];
  const cache = await start(
    { onStateChange: (_, reason) => reasons.push(reason?.message ?? '') },
    redis.url.replace('redis://', 'redis://:wrong@'),
  );
  expect(cache.state).toBe('unavailable');
  expect(reasons).toEqual([expect.stringContaining('WRONGPASS')]);
});

test('starts although Redis hangs in the handshake', async () => {
  await redis.admin.config('SET', 'requirepass', 'secret');
  redis.pause();
  const cache = await start({}, redis.url.replace('redis://', 'redis://:secret@'));
  expect(cache.state).toBe('unavailable');
  redis.resume();
  await untilState(cache, 'usable');
});

test('while recovering, reads bypass the cache and clears are carried out', async () => {
  let recoveries = 0;
  let goOn = Promise.withResolvers<void>();
  goOn.resolve();
  const cache = await start({
    recover: async () => {
      recoveries += 1;
      await goOn.promise;
    },
  });
  await cache.read('webform', 12, 'full', loadVersion(1));
  await redis.admin.save();
  goOn = Promise.withResolvers();
  await redis.kill();
  await redis.restart();
  await untilState(cache, 'recovering');

  expect(await cache.read('webform', 12, 'full', loadVersion(2))).toMatchObject({ outcome: 'bypass' });
  expect(await cache.clearRecord('webform', 12)).toBe(1);
  goOn.resolve();
  await untilState(cache, 'usable');
  expect(recoveries).toBe(2);
});

test('retries a failed recovery, and leaves the cache unused until then', async () => {
  let failures = 2;
  const reasons: Array<string | undefined> = [];
  const cache = await start({
    onStateChange: (state, reason) => reasons.push(`${state} ${reason?.message ?? ''}`.trim()),
    recover: async () => {
      if (failures-- > 0) throw new Error('no database');
    },
  });
  expect(cache.state).toBe('unavailable');
  expect(await cache.read('webform', 12, 'full', loadVersion(1))).toMatchObject({ outcome: 'bypass' });
  await untilState(cache, 'usable');
  expect(reasons.filter((line) => line === 'unavailable no database')).toHaveLength(2);
});

test('a hanging Redis costs the commands in flight a timeout; after that nothing is sent to it', async () => {
  const cache = await start();
  await cache.read('webform', 12, 'full', loadVersion(1));
  redis.pause();
  const clears = [cache.clearRecord('webform', 12), cache.clearPattern('webform')];
  for (const clear of clears) await expect(clear).rejects.toMatchObject({ name: 'CacheUnavailable' });
  await untilState(cache, 'unavailable');

  let sent = 0;
  const { start: channel } = tracingChannel('ioredis:command');
  const count = (message: unknown) => {
    if ((message as { args: string[] }).args.includes('webform:12')) sent += 1;
  };
  channel.subscribe(count);
  for (let reads = 0; reads < 150; reads += 1, await sleep(10)) {
    expect(await cache.read('webform', 12, 'full', loadVersion(2))).toMatchObject({ outcome: 'bypass' });
    await expect(cache.clearRecord('webform', 12)).rejects.toMatchObject({ name: 'CacheUnavailable' });
  }
  channel.unsubscribe(count);
  expect(sent).toBe(0);

  redis.resume();
  await untilState(cache, 'usable');
  // An unanswered clear is uncertain, so the sender retries it.
  await cache.clearRecord('webform', 12);
  expect(await cache.read('webform', 12, 'full', loadVersion(2))).toMatchObject({ outcome: 'miss' });
});

test("closes the connection on a command's timeout, so that a resumed Redis cannot answer on it", async () => {
  const cache = await start();
  const before = await ourClients();
  redis.pause();
  await cache.read('webform', 12, 'full', loadVersion(1));
  redis.resume();
  await untilState(cache, 'usable');
  await until('the old connection is closed', async () => !(await ourClients()).includes(before[0]!));
  expect(before).toHaveLength(1);
});

const PAYLOAD = `"${'x'.repeat(200_000)}"`;
const loadLarge = async () => ({ version: 1, payload: PAYLOAD });

/** Starts a cache behind a proxy, with a large record in Redis. */
async function startBehindProxy(): Promise<{ cache: ContentCache; proxy: Proxy }> {
  const proxy = await startProxy(new URL(redis.url));
  started.onEnd(proxy.close);
  const cache = await start({}, proxy.url);
  await cache.read('webform', 12, 'full', loadLarge);
  return { cache, proxy };
}

test('a slow reply fails only its own command, and is discarded when it arrives', async () => {
  const { cache, proxy } = await startBehindProxy();
  await cache.read('webform', 13, 'full', loadVersion(13));
  const before = await ourClients();

  // The reply takes a second; the others wait behind it.
  proxy.limitReplies(2_000);
  const reads = Promise.all([12, 13].map((id) => cache.read('webform', id, 'full', loadVersion(2))));
  await expect(cache.clearRecord('pathway', 1)).rejects.toMatchObject({ name: 'CacheUnavailable' });
  const bypass = { outcome: 'bypass', reason: { name: 'CacheUnavailable' } };
  expect(await reads).toMatchObject([bypass, bypass]);
  expect(cache.state).toBe('usable');
  proxy.limitReplies(Infinity);
  expect((await cache.read('webform', 13, 'full', loadNothing)).record?.version).toBe(13);
  expect((await cache.read('webform', 12, 'full', loadNothing)).record?.payload).toBe(PAYLOAD);
  expect(await ourClients()).toEqual(before);
});

test('closes the connection if a reply arrives endlessly in small pieces', async () => {
  const { cache, proxy } = await startBehindProxy();
  proxy.limitReplies(100);
  expect(await cache.read('webform', 12, 'full', loadLarge)).toMatchObject({ outcome: 'bypass' });
  expect(cache.state).toBe('usable');
  await untilState(cache, 'unavailable');
});

test('closes the connection if Redis is suspended during a reply', async () => {
  const { cache, proxy } = await startBehindProxy();
  proxy.limitReplies(5_000);
  const reading = cache.read('webform', 12, 'full', loadLarge);
  await sleep(50);
  redis.pause();
  expect(await reading).toMatchObject({ outcome: 'bypass' });
  await untilState(cache, 'unavailable');
});

test('notices on an idle connection that Redis hangs', async () => {
  const cache = await start();
  redis.pause();
  await untilState(cache, 'unavailable');
  redis.resume();
  await untilState(cache, 'usable');
});

test('a busy process does not mistake Redis for dead', async () => {
  const cache = await start();
  await cache.read('webform', 12, 'full', loadVersion(1));
  const reading = cache.read('webform', 12, 'full', loadNothing);
  // The command is sent.
  await new Promise(setImmediate);
  // Blocks this thread for longer than a command's timeout; Redis answers meanwhile.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000);
  expect(await reading).toMatchObject({ outcome: 'hit' });
  expect(cache.state).toBe('usable');
});

test('reports memory in bytes', async () => {
  await redis.admin.config('SET', 'maxmemory', '64mb');
  const cache = await start();
  const { usedBytes, limitBytes, evictedKeys } = await cache.memory();
  expect(usedBytes).toBeGreaterThan(100_000);
  expect(limitBytes).toBe(64 * 1024 * 1024);
  expect(evictedKeys).toBe(0);
});

test.each(['usable', 'hanging', 'unavailable'])('close() disconnects while Redis is %s', async (how) => {
  const cache = await start();
  if (how === 'hanging') redis.pause();
  if (how === 'unavailable') await redis.kill().then(() => untilState(cache, 'unavailable'));
  await cache.close();
  expect(cache.state).toBe('closed');
  expect(await cache.read('webform', 12, 'full', loadVersion(1))).toMatchObject({ outcome: 'bypass' });
});
