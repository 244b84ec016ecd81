import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { views, type View } from '@content-platform/contract';
import type { Redis } from 'ioredis';
import { CacheError, type ContentCache, type LoadedRecord } from '../index.ts';
import type { CacheRead } from '../protocol/record-cache.ts';
import { createLedgers, ledgerMemory, type Ledger } from './ledger.ts';
import { createRandom, pick, type Random } from './random.ts';
import { createVersionedStore } from './versioned-store.ts';

/** The cache, or a broken cache with the same interface. */
export type RaceCache = Pick<ContentCache, 'read' | 'readMany' | 'clearRecord' | 'clearPattern'>;

export interface RaceOptions {
  /** Determines every random choice. The machine's scheduling is not repeatable. */
  seed: number;
  /** One per simulated process; readers and writers are distributed over them. */
  caches: RaceCache[];
  /** Another program's connection, which writes unmanaged keys; a restart from an old file would bring them back. */
  foreign?: Redis;
  models: string[];
  /** records of each model */
  records: number;
  readers: number;
  writers: number;
  /** Memory of the ledgers, if several threads race for the same records. */
  memory?: SharedArrayBuffer;
  /** Called after each read; true ends the race. */
  done: (figures: RaceFigures) => boolean;
  /** A race that takes longer, in milliseconds, fails. */
  limitMs: number;
}

export type RaceFigures = typeof noFigures & { firstStale?: string };

export const noFigures = {
  reads: 0,
  hits: 0,
  misses: 0,
  bypasses: 0,
  /** reads that overlap an unanswered clear of their record, and their outcomes */
  readsDuringClear: 0,
  hitsDuringClear: 0,
  missesDuringClear: 0,
  bypassesDuringClear: 0,
  /** acknowledged clears of a record, and of a model */
  clears: 0,
  patternClears: 0,
  /** clears that were refused and retried */
  refusedClears: 0,
  unmanagedKeys: 0,
  /** unmanaged keys that still existed after the acknowledgement */
  unmanagedLeft: 0,
  /**
   * reads that started after a clear was acknowledged and returned an older version than was committed when the clear
   * was sent
   */
  stale: 0,
  /** reads that returned another record or view than was asked for */
  mistaken: 0,
};

/** A reader that bypassed the cache pauses: the race should not count outages. */
const BYPASS_PAUSE_MS = 100;

const OUTCOMES = { hit: 'hits', miss: 'misses', bypass: 'bypasses' } as const;

/** Runs readers and writers until `done`, and counts their observations. */
export async function runRace(options: RaceOptions): Promise<RaceFigures> {
  const { seed, caches, done, limitMs } = options;
  const over = new AbortController();
  const { figures, read, write } = createRace(options, over.signal);

  async function loop(index: number, step: (cache: RaceCache, random: Random) => Promise<void>) {
    const random = createRandom(seed + index);
    while (!over.signal.aborted) {
      await step(caches[index % caches.length]!, random);
      if (done(figures)) over.abort();
    }
  }

  const running = [
    ...Array.from({ length: options.readers }, (_, index) => loop(index, read)),
    ...Array.from({ length: options.writers }, (_, index) => loop(options.readers + index, write)),
  ];
  const hung = sleep(limitMs, undefined, { signal: over.signal }).then(
    () => Promise.reject(new Error(`the race hangs: ${JSON.stringify(figures)}`)),
    () => {},
  );
  try {
    await Promise.all([hung, ...running]);
  } finally {
    over.abort();
  }
  return figures;
}

/** Returns the step of a reader and the step of a writer, and the figures of all steps. */
function createRace({ seed, models, records, memory, foreign }: RaceOptions, signal: AbortSignal) {
  const ledgers = createLedgers(models, records, memory ?? ledgerMemory(models.length * records));
  const database = createVersionedStore(createRandom(seed));
  const figures: RaceFigures = { ...noFigures };
  const any = <T>(list: readonly T[], random: Random): T => list[pick(random, list.length)]!;

  /** Waits for a read that has just begun, and counts what it returned. */
  async function observe(ledger: Ledger, view: View, reading: Promise<CacheRead>) {
    const { model, id } = ledger;
    const floor = ledger.floor.value;
    const sentBefore = ledger.clearsSent.value;
    const isBeingCleared = ledger.clearing.value > 0;

    const { outcome, record } = await reading;

    figures.reads += 1;
    figures[OUTCOMES[outcome]] += 1;
    if (isBeingCleared || ledger.clearsSent.value > sentBefore) {
      figures.readsDuringClear += 1;
      figures[`${OUTCOMES[outcome]}DuringClear`] += 1;
    }
    if (record) {
      const seen = JSON.parse(record.payload);
      const asked = seen.model === model && seen.id === id && seen.view === view;
      if (!asked || seen.version !== record.version) figures.mistaken += 1;
    }
    if (record ? record.version < floor : !wasDeletedSince(ledger, floor)) {
      figures.stale += 1;
      const seen = `${model}:${id} ${view} version ${record?.version ?? 'absent'} (${outcome})`;
      figures.firstStale ??= `read ${figures.reads}: ${seen}, cleared at ${floor}`;
    }
    return outcome;
  }

  async function readOnce(cache: RaceCache, random: Random): Promise<void> {
    const ledger = any(any(ledgers, random), random);
    if (random() < 0.1) await sleep(random() * 5);
    const view = any(views, random);
    const load = () => database.load(ledger, view);
    const outcome = await observe(ledger, view, cache.read(ledger.model, ledger.id, view, load));
    if (outcome === 'bypass') await sleep(BYPASS_PAUSE_MS);
  }

  /** Reads half of a model's records in one call. */
  async function readTogether(cache: RaceCache, random: Random): Promise<void> {
    const all = any(ledgers, random);
    const chosen = all.filter(() => random() < 0.5);
    const view = any(views, random);
    const load = async (ids: number[]) => {
      const found = await Promise.all(ids.map(async (id) => [id, await database.load(all[id - 1]!, view)]));
      return new Map(found.filter(([, record]) => record) as [number, LoadedRecord][]);
    };
    const ids = chosen.map(({ id }) => id);
    const reads = cache.readMany(all[0]!.model, ids, view, load);
    const read = async (index: number) => (await reads)[index]!;
    await Promise.all(chosen.map((ledger, index) => observe(ledger, view, read(index))));
  }

  /**
   * A sender that retries until the race is over. Returns false if it got no acknowledgement. Only what was committed
   * when the acknowledged attempt was sent counts.
   */
  async function clearUntilAcknowledged(cleared: Ledger[], clear: () => Promise<number>): Promise<boolean> {
    while (!signal.aborted) {
      const sent = cleared.map(({ committed }) => committed.value);
      for (const { clearing, clearsSent } of cleared) {
        clearing.add(1);
        clearsSent.add(1);
      }
      try {
        await clear();
        cleared.forEach(({ floor }, index) => floor.raise(sent[index]!));
        return true;
      } catch (error) {
        if (!(error instanceof CacheError)) throw error;
        figures.refusedClears += 1;
      } finally {
        for (const { clearing } of cleared) clearing.add(-1);
      }
      await sleep(20);
    }
    return false;
  }

  async function change(ledger: Ledger, exists: boolean): Promise<void> {
    if (!exists) ledger.deleting.add(1);
    const version = await database.change(ledger, exists);
    ledger.committed.raise(version);
    if (exists) return;
    ledger.deletedAt.raise(version);
    ledger.deleting.add(-1);
  }

  /** Writes another program's key for the record. The name is used once, so the clear must delete the key. */
  async function plant(redis: Redis, { model, id }: Ledger): Promise<string> {
    figures.unmanagedKeys += 1;
    const key = `${model}:${id}:other-${randomUUID()}`;
    await redis.set(key, 'kept by another program');
    return key;
  }

  return {
    figures,
    read: (cache: RaceCache, random: Random) => (random() < 0.1 ? readTogether : readOnce)(cache, random),
    /** Changes a record, or some records of a model, and clears the record or the model. */
    async write(cache: RaceCache, random: Random): Promise<void> {
      await sleep(random() * 8);
      const wholeModel = random() < 0.03;
      const model = any(ledgers, random);
      const changed = wholeModel ? model.filter(() => random() < 0.3) : [any(model, random)];
      const cleared = wholeModel ? model : changed;

      const planted: string[] = [];
      for (const ledger of changed) {
        if (foreign && random() < 0.3) planted.push(await plant(foreign, ledger));
        await change(ledger, random() < 0.9);
      }
      const { model: name, id } = cleared[0]!;
      const clear = () => (wholeModel ? cache.clearPattern(name) : cache.clearRecord(name, id));
      if (!(await clearUntilAcknowledged(cleared, clear))) return;
      figures[wholeModel ? 'patternClears' : 'clears'] += 1;
      figures.unmanagedLeft += (await foreign?.exists(...planted, 'none')) ?? 0;
    },
  };
}

/** "Absent" is correct if the record was deleted at the floor or later. */
function wasDeletedSince({ deleting, deletedAt }: Ledger, floor: number): boolean {
  // In this order: a finished deletion has written its version.
  return deleting.value > 0 || deletedAt.value >= floor;
}
