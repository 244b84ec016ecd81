import type { LoadedRecord, LoadRecord } from '../protocol/record-cache.ts';
import type { ProtocolScripts } from '../connection.ts';
import { protocolScripts } from './caches.ts';
import type { RaceCache } from './race.ts';

/** The protocol with one guard removed. The race must detect each of these; otherwise it proves nothing. */
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
    script.replaceAll(`return run .. '-' .. replication`, `return 'always'`),
  ),
  runIdOnly: each((script) => script.replaceAll(`return run .. '-' .. replication`, `return run`)),
  withoutHeader: each((script) => script.replace(/^#!lua.*\n/, '')),
  /** Every server passes the sweep's check, as if the sweep did not check. */
  sweepWithoutChecks: {
    ...protocolScripts,
    incarnation: `return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') .. '-always'`,
  },
} satisfies Record<string, ProtocolScripts>;

function each(breakOne: (script: string) => string): ProtocolScripts {
  const broken = Object.entries(protocolScripts).map(([name, script]) => [name, breakOne(script)]);
  return Object.fromEntries(broken) as unknown as ProtocolScripts;
}

function swap(script: string, guard: string, replacement: string): string {
  if (!script.includes(guard)) throw new Error(`the script has no such guard: ${guard}`);
  return script.replace(guard, replacement);
}

/** Reads the database before it asks for the lease. */
export function readingDatabaseFirst(cache: RaceCache): RaceCache {
  return {
    ...cache,
    async read(model, id, view, load) {
      const record = await load();
      return cache.read(model, id, view, async () => record);
    },
    async readMany(model, ids, view, load) {
      const records = await load(ids);
      return cache.readMany(model, ids, view, async () => records);
    },
  };
}

/** The first statement of a call loads every record, also those for which the call does not hold a lease yet. */
export function loadingAllAtOnce(cache: RaceCache): RaceCache {
  return {
    ...cache,
    readMany(model, ids, view, load) {
      let records: ReturnType<typeof load> | undefined;
      return cache.readMany(model, ids, view, () => (records ??= load(ids)));
    },
  };
}

/** Readers of one process share a running database read, even if it began before the clear. */
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
