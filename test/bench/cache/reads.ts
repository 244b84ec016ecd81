import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { Pool } from 'undici';
import { clearModel } from '@content-platform/contract';
import { cpuOf, redisCpu } from '../figures.ts';
import type { Job, Seen } from '../gateway/job.ts';
import type { Load } from '../gateway/processes.ts';
import type { Records } from './records.ts';

export function connectTo(origin: string, headers: Record<string, string>) {
  // The client closes idle connections before the service does, which would break a request being sent.
  const pool = new Pool(origin, {
    connections: readers,
    pipelining: 1,
    headersTimeout: 60_000,
    keepAliveMaxTimeout: 2_000,
  });
  const answer = async ({ statusCode, body }: Awaited<ReturnType<Pool['request']>>): Promise<string> => {
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${origin}: ${statusCode} ${text}`);
    return text;
  };
  return {
    origin,
    async read(id: number, view: 'full' | 'summary' = 'full') {
      const path = `/api/content/webform/${id}?view=${view}`;
      const text = await answer(await pool.request({ method: 'GET', path, headers }));
      return (JSON.parse(text) as { version: number }).version;
    },
    async clear(id: number) {
      const body = JSON.stringify({ model: 'webform', id });
      const sent = { ...headers, 'content-type': 'application/json' };
      await answer(await pool.request({ method: 'POST', path: clearModel.path, headers: sent, body }));
    },
  };
}
export type Service = ReturnType<typeof connectTo>;

/** One round of a candidate; CPU for a request, in µs. */
export type HitRound = Seen & { gateway: number; service: number; redis: number };

export async function measureHits(
  load: Load<Job, Seen>,
  job: Job,
  of: { gateway: ChildProcess; service: ChildProcess; admin: Redis },
): Promise<HitRound> {
  const cpu = async () => [cpuOf(of.gateway.pid!), cpuOf(of.service.pid!), await redisCpu(of.admin)] as const;
  const before = await cpu();
  const seen = await load.send(job);
  const after = await cpu();
  const [gateway, service, redis] = after.map((us, index) => (us - before[index]!) / job.requests);
  return { ...seen, gateway: gateway!, service: service!, redis: redis! };
}

export const readers = 1_000;

/**
 * Sends a thousand simultaneous reads of a new record, spread over the processes. Returns the number of database reads,
 * and the time from the first request to the last reply.
 */
export async function storm(services: readonly Service[], records: Records) {
  const [warm, cold] = (await records.make(2)) as [number, number];
  const all = (id: number) =>
    Promise.all(Array.from({ length: readers }, (_, n) => services[n % services.length]!.read(id)));
  // Opens every connection in advance.
  await services[0]!.read(warm);
  await all(warm);
  const before = await records.reads();
  const start = performance.now();
  await all(cold);
  return { reads: (await records.reads()) - before, ms: performance.now() - start };
}
export type Storm = Awaited<ReturnType<typeof storm>>;

const writers = 4;
const raceReaders = 16;
/** Maximum pause between an acknowledged clear and the record's next change, in ms. */
const pauseMs = 40;

const oneOf = <T>(all: readonly T[]): T => all[Math.floor(Math.random() * all.length)]!;

/** Each writer changes and clears its own record through any process; readers read any record through any process. */
export async function race(services: readonly Service[], records: Records, seconds: number) {
  const ids = await records.make(writers);
  const acknowledged = new Map(ids.map((id) => [id, 1]));
  const end = performance.now() + seconds * 1_000;
  // Stale: reads that began after an acknowledged clear and returned a version older than the change before it.
  const found = { clears: 0, reads: 0, stale: 0 };

  async function write(id: number): Promise<void> {
    while (performance.now() < end) {
      const version = await records.change(id);
      await oneOf(services).clear(id);
      acknowledged.set(id, version);
      found.clears += 1;
      await sleep(Math.random() * pauseMs);
    }
  }
  async function read(): Promise<void> {
    while (performance.now() < end) {
      const id = oneOf(ids);
      const least = acknowledged.get(id)!;
      const version = await oneOf(services).read(id);
      found.reads += 1;
      if (version < least) found.stale += 1;
    }
  }
  await Promise.all([...ids.map(write), ...Array.from({ length: raceReaders }, read)]);
  return found;
}
export type Race = Awaited<ReturnType<typeof race>>;
