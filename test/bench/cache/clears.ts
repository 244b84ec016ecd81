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

/** Caches both views of records, with another program's key for each. */
async function cached(service: Service, { redis, records }: ClearsContext, count: number): Promise<number[]> {
  const ids = await records.make(count);
  const step = 16;
  for (let start = 0; start < count; start += step) {
    const some = ids.slice(start, start + step);
    await Promise.all(some.flatMap((id) => [service.read(id), service.read(id, 'summary')]));
    await Promise.all(some.map((id) => redis.admin.set(`webform:${id}:menu`, 'x')));
  }
  return ids;
}

/** Deletes remaining keys. A search that left keys, or another clear that deleted them, is an error. */
async function deleteRest({ redis: { admin } }: ClearsContext, ids: readonly number[], isSearch: boolean) {
  const left = await admin.del(ids.map((id) => `webform:${id}:menu`));
  const others = await admin.exists(
    ids.flatMap((id) => [`webform:${id}`, `webform:${id}:full`, `webform:${id}:summary`]),
  );
  if (others > 0 || (isSearch && left > 0)) throw new Error(`${left} + ${others} keys were not cleared`);
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
  const ids = await cached(service, context, count);
  const [start, before] = [performance.now(), await redisCpu(admin)];
  const times = await clearEach(service, ids);
  const taken = (await redisCpu(admin)) - before - context.idleCpu * (performance.now() - start);
  await deleteRest(context, ids, isSearch);

  const probed = await cached(service, context, Math.ceil(count / 2));
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
  const [one, ...ids] = await cached(service, context, 1 + together);
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
