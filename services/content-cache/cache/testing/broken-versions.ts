import { Redis } from 'ioredis';

import type { LoadedRecord, LoadRecord } from '../record-cache.ts';
import { protocolScripts, type ProtocolScripts } from '../scripts.ts';
import type { RaceCache } from './race.ts';

/** The protocol with one guard taken out: each of these must be caught, or the proof proves nothing. */
export const brokenScripts = {
  fillWithoutLeaseCheck: {
    ...protocolScripts,
    fill: swap(
      protocolScripts.fill,
      `if fields_of(key, { view .. ':lease' })[1] ~= lease then return 'REFUSED' end`,
      '',
    ),
  },
  clearThatLeavesTheLease: {
    ...protocolScripts,
    clear: swap(
      protocolScripts.clear,
      `redis.call('UNLINK', KEYS[1])`,
      `redis.call('HDEL', KEYS[1], 'full:payload', 'summary:payload')`,
    ),
  },
  withoutIncarnation: each((script) =>
    swapAll(script, `return run .. '-' .. replication`, `return 'always'`),
  ),
  runIdOnly: each((script) => swapAll(script, `return run .. '-' .. replication`, `return run`)),
  withoutHeader: each((script) => script.replace(/^#!lua.*\n/, '')),
  /** The sweeps' question is answered whatever the server is: as if it were not asked. */
  sweepWithoutChecks: { ...protocolScripts, incarnation: `return 'not asked'` },
} satisfies Record<string, ProtocolScripts>;

function each(breakOne: (script: string) => string): ProtocolScripts {
  const { read, fill, clear, peek, incarnation } = protocolScripts;
  return {
    read: breakOne(read),
    fill: breakOne(fill),
    clear: breakOne(clear),
    peek: breakOne(peek),
    incarnation: breakOne(incarnation),
  };
}

function swap(script: string, guard: string, replacement: string): string {
  if (!script.includes(guard)) throw new Error(`the script has no such guard: ${guard}`);
  return script.replace(guard, replacement);
}

function swapAll(script: string, guard: string, replacement: string): string {
  return script.replaceAll(guard, replacement);
}

/** Reads the database before it asks for the lease. */
export function readingDatabaseFirst(cache: RaceCache): RaceCache {
  return {
    ...cache,
    async read(model, id, view, load) {
      const record = await load();
      return cache.read(model, id, view, async () => record);
    },
  };
}

/** A cache in the process's memory in front, which hears of its own process's clears only. */
export function withMemoryInFront(cache: RaceCache): RaceCache {
  const memory = new Map<string, LoadedRecord | null>();
  return {
    async read(model, id, view, load) {
      const key = `${model}:${id}:${view}`;
      const known = memory.get(key);
      if (known !== undefined) return { outcome: 'hit', record: known };
      const answer = await cache.read(model, id, view, load);
      memory.set(key, answer.record);
      return answer;
    },
    async clearModel(model, id) {
      const count = await cache.clearModel(model, id);
      memory.delete(`${model}:${id}:full`);
      memory.delete(`${model}:${id}:summary`);
      return count;
    },
    async clearPattern(model) {
      const count = await cache.clearPattern(model);
      memory.clear();
      return count;
    },
  };
}

/** Readers of one process share a database read that is under way, also one that began before the clear. */
export function joiningLoads(cache: RaceCache): RaceCache {
  const underWay = new Map<string, Promise<LoadedRecord | null>>();
  const join = (key: string, load: LoadRecord) => {
    const joined = underWay.get(key) ?? load().finally(() => underWay.delete(key));
    underWay.set(key, joined);
    return joined;
  };
  return {
    ...cache,
    read: (model, id, view, load) => cache.read(model, id, view, () => join(`${model}:${id}:${view}`, load)),
  };
}

/** What one writes without thinking: GET, else read the database and SET; a clear is DEL. */
export function cacheAside(redis: Redis): RaceCache {
  return {
    async read(model, id, view, load) {
      const key = `${model}:${id}:${view}`;
      const cached = await redis.get(key);
      if (cached !== null) return { outcome: 'hit', record: JSON.parse(cached) };
      const record = await load();
      await redis.set(key, JSON.stringify(record), 'PX', 300_000);
      return { outcome: 'miss', record };
    },
    clearModel: (model, id) => redis.del(`${model}:${id}:full`, `${model}:${id}:summary`),
    async clearPattern(model) {
      const keys = await redis.keys(`${model}:*`);
      return keys.length === 0 ? 0 : redis.del(keys);
    },
  };
}
