import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChildProcess } from 'node:child_process';
import { percentile, timesOf } from '../percentiles.ts';
import { redisCpu, scanCalls } from '../figures.ts';
import type { RedisServer } from '../../support/redis-server.ts';
import type { Records } from './records.ts';
import type { Service } from './reads.ts';

const valueBytes = 32;
export const together = 100;

export interface ClearsContext {
  redis: RedisServer;
  records: Records;
  prober: ChildProcess;
  /** CPU of an idle Redis, in µs per ms. */
  idleCpu: number;
}

const restMs = 2_000;

export async function measureIdleCpu({ admin }: RedisServer): Promise<number> {
  const [start, before] = [performance.now(), await redisCpu(admin)];
  await sleep(restMs);
  return ((await redisCpu(admin)) - before) / (performance.now() - start);
}

/** Sets the number of other records' keys in Redis. */
export async function fill({ admin }: RedisServer, keys: number): Promise<void> {
  // A million keys take seconds.
  const patient = admin.duplicate({ commandTimeout: 120_000 });
  await patient.flushall();
  await patient.call('DEBUG', 'POPULATE', keys, 'pathway', valueBytes);
  patient.disconnect();
}

/** Creates records and caches both views of each, with another program's key (menu). Returns the ids. */
async function cacheNewRecords(service: Service, { redis, records }: ClearsContext, count: number) {
  const ids = await records.make(count);
  const step = 16;
  for (let start = 0; start < count; start += step) {
    const some = ids.slice(start, start + step);
    await Promise.all(some.flatMap((id) => [service.read(id), service.read(id, 'summary')]));
    await Promise.all(some.map((id) => redis.admin.set(`webform:${id}:menu`, 'x')));
  }
  return ids;
}

/** Deletes the other program's menus. Throws if the clears left a view or, as a search, a menu. */
async function deleteRest({ redis: { admin } }: ClearsContext, ids: readonly number[], isSearch: boolean) {
  const menus = await admin.del(ids.map((id) => `webform:${id}:menu`));
  const views = await admin.exists(
    ids.flatMap((id) => [`webform:${id}`, `webform:${id}:full`, `webform:${id}:summary`]),
  );
  if (views > 0 || (isSearch && menus > 0)) throw new Error(`not cleared: ${views} views, ${menus} menus`);
}

async function clearEach(service: Service, ids: readonly number[]): Promise<number[]> {
  const times: number[] = [];
  for (const id of ids) {
    const start = performance.now();
    await service.clear(id);
    times.push(performance.now() - start);
  }
  return times;
}

/** Clears records in sequence: once to measure duration and CPU, once while PINGs measure the latency. */
export async function measureClears(
  service: Service,
  isSearch: boolean,
  context: ClearsContext,
  keys: number,
  count: number,
) {
  const { admin } = context.redis;
  const ids = await cacheNewRecords(service, context, count);
  const [start, before] = [performance.now(), await redisCpu(admin)];
  const times = await clearEach(service, ids);
  const taken = (await redisCpu(admin)) - before - context.idleCpu * (performance.now() - start);
  await deleteRest(context, ids, isSearch);

  const probed = await cacheNewRecords(service, context, Math.ceil(count / 2));
  context.prober.send('start');
  await clearEach(service, probed);
  context.prober.send('stop');
  const [pings] = (await once(context.prober, 'message')) as [number[]];
  await deleteRest(context, probed, isSearch);
  return {
    keys,
    times: timesOf(times),
    /** CPU of Redis per clear in µs, without its idle CPU. */
    redisCpu: taken / count,
    /** Latency of a PING during the clears, in ms. */
    ping: { p99: percentile(pings, 0.99), max: percentile(pings, 1) },
  };
}
export type Clears = Awaited<ReturnType<typeof measureClears>>;

/** Clears a hundred records simultaneously in one process that searches for keys. */
export async function measureTogether(service: Service, context: ClearsContext, keys: number) {
  const { admin } = context.redis;
  const [one, ...ids] = await cacheNewRecords(service, context, 1 + together);
  const calls = async (work: () => Promise<unknown>) => {
    const before = await scanCalls(admin);
    await work();
    return (await scanCalls(admin)) - before;
  };
  const ofOne = await calls(() => service.clear(one!));
  const start = performance.now();
  const ofAll = await calls(() => Promise.all(ids.map((id) => service.clear(id))));
  const ms = performance.now() - start;
  await deleteRest(context, [one!, ...ids], true);
  return { keys, ms, scans: ofAll / ofOne };
}
export type Together = Awaited<ReturnType<typeof measureTogether>>;
