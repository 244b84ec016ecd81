import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChildProcess } from 'node:child_process';
import { percentile, timesOf, type Times } from '../percentiles.ts';
import { redisCpu, scanCalls } from '../redis-figures.ts';
import type { RedisServer } from '../../support/redis-server.ts';
import type { Records } from './records.ts';
import type { Service } from './service.ts';

const valueBytes = 32;
/** Clears that wait for each other. */
export const together = 100;

export interface Clears {
  keys: number;
  /** Of one clear after the other, in ms. */
  times: Times;
  /** For one clear, in µs, less what Redis takes at rest. */
  redisCpu: number;
  /** How long a PING waited meanwhile, in ms. */
  ping: { p99: number; max: number };
}

export interface Together {
  keys: number;
  ms: number;
  /** How many times all keys were gone through. */
  scans: number;
}

export interface Around {
  redis: RedisServer;
  records: Records;
  prober: ChildProcess;
  /** CPU that Redis takes when nothing is asked of it but whether it is there, in µs a ms. */
  atRest: number;
}

const restMs = 2_000;

/** @see Around.atRest */
export async function cpuAtRest({ admin }: RedisServer): Promise<number> {
  const [start, before] = [performance.now(), await redisCpu(admin)];
  await sleep(restMs);
  return ((await redisCpu(admin)) - before) / (performance.now() - start);
}

/** Redis has so many keys of other records, and no more. */
export async function fill({ admin }: RedisServer, keys: number): Promise<void> {
  // A million takes seconds.
  const patient = admin.duplicate({ commandTimeout: 120_000 });
  await patient.flushall();
  await patient.call('DEBUG', 'POPULATE', keys, 'pathway', valueBytes);
  patient.disconnect();
}

/** Records that are cached in both views, each with a key of another program beside. */
async function cached(service: Service, { redis, records }: Around, count: number): Promise<number[]> {
  const ids = await records.make(count);
  const step = 16;
  for (let start = 0; start < count; start += step) {
    const some = ids.slice(start, start + step);
    await Promise.all(some.flatMap((id) => [service.read(id), service.read(id, 'summary')]));
    await Promise.all(some.map((id) => redis.admin.set(`webform:${id}:menu`, 'x')));
  }
  return ids;
}

/** Ends what a way of clearing has left: it was not to find it, or it was to, and that is an error. */
async function tidy({ redis: { admin } }: Around, ids: readonly number[], isSearch: boolean): Promise<void> {
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

/** Clears one record after the other: once for the times and the CPU, once with a prober beside. */
export async function measureClears(
  service: Service,
  isSearch: boolean,
  around: Around,
  keys: number,
  count: number,
): Promise<Clears> {
  const { admin } = around.redis;
  const ids = await cached(service, around, count);
  const [start, before] = [performance.now(), await redisCpu(admin)];
  const times = await clearEach(service, ids);
  const taken = (await redisCpu(admin)) - before - around.atRest * (performance.now() - start);
  await tidy(around, ids, isSearch);

  const probed = await cached(service, around, Math.ceil(count / 2));
  around.prober.send('start');
  await clearEach(service, probed);
  around.prober.send('stop');
  const [pings] = (await once(around.prober, 'message')) as [number[]];
  await tidy(around, probed, isSearch);
  return {
    keys,
    times: timesOf(times),
    redisCpu: taken / count,
    ping: { p99: percentile(pings, 0.99), max: percentile(pings, 1) },
  };
}

/** Clears a hundred records at once, by one process that searches. */
export async function measureTogether(service: Service, around: Around, keys: number): Promise<Together> {
  const { admin } = around.redis;
  const [one, ...ids] = await cached(service, around, 1 + together);
  const calls = async (work: () => Promise<unknown>) => {
    const before = await scanCalls(admin);
    await work();
    return (await scanCalls(admin)) - before;
  };
  const ofOne = await calls(() => service.clear(one!));
  const start = performance.now();
  const ofAll = await calls(() => Promise.all(ids.map((id) => service.clear(id))));
  const ms = performance.now() - start;
  await tidy(around, [one!, ...ids], true);
  return { keys, ms, scans: ofAll / ofOne };
}
