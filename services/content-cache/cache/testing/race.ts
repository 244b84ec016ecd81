import { setTimeout as sleep } from 'node:timers/promises';

import type { Redis } from 'ioredis';

import { CacheError, type ContentCache } from '../index.ts';
import { VIEWS } from '../keys.ts';
import { createRandom, pick, type Random } from './random.ts';
import { createVersionedStore, type RaceDatabase } from './versioned-store.ts';

/** What is raced: the cache, or a broken one of the same shape. */
export type RaceCache = Pick<ContentCache, 'read' | 'clearModel' | 'clearPattern'>;

export interface RaceOptions {
  /** Gives every choice of the race; what the machine's scheduling adds is not repeatable. */
  seed: number;
  /** One for each process that is played; readers and writers are dealt out over them. */
  caches: RaceCache[];
  database: RaceDatabase;
  /** Another program's connection, which writes unmanaged keys; a restart from an old file would bring them back. */
  foreign?: Redis;
  models: string[];
  /** records of each model */
  records: number;
  readers: number;
  writers: number;
  /** Asked after each read; true ends the race. */
  done: (figures: RaceFigures) => boolean;
  /** A race that takes longer, in milliseconds, hangs and is an error. */
  limitMs: number;
}

export interface RaceFigures {
  reads: number;
  hits: number;
  misses: number;
  bypasses: number;
  /** reads during which a clear of the same record was under way */
  readsDuringClear: number;
  /** acknowledged clears of one record, and of a model */
  clears: number;
  patternClears: number;
  /** clears that were refused and tried again */
  refusedClears: number;
  unmanagedKeys: number;
  /** unmanaged keys that were still there after the acknowledgement */
  unmanagedLeft: number;
  /** reads that started after a clear's acknowledgement and returned less than was committed when it was sent */
  stale: number;
  /** reads that returned another record or view than was asked for */
  mistaken: number;
  firstStale?: string;
}

/** What is known of one record. */
interface Ledger {
  model: string;
  id: number;
  /** the highest version whose commit was answered */
  committed: number;
  /** the highest version that was committed when an acknowledged clear was sent: no read that starts now may be below */
  floor: number;
  /** the version of the last deletion, and deletions whose commit is under way */
  deletedAt: number;
  deleting: number;
  /** clears under way, and clears that were ever begun */
  clearing: number;
  clearsBegun: number;
}

/** Lets readers and writers race until `done`, and counts what they saw. */
async function runRace(options: RaceOptions): Promise<RaceFigures> {
  const { seed, caches, models, records, done, limitMs } = options;
  const ledgers = models.map((model) =>
    Array.from({ length: records }, (_, index) => newLedger(model, index + 1)),
  );
  const figures: RaceFigures = {
    reads: 0,
    hits: 0,
    misses: 0,
    bypasses: 0,
    readsDuringClear: 0,
    clears: 0,
    patternClears: 0,
    refusedClears: 0,
    unmanagedKeys: 0,
    unmanagedLeft: 0,
    stale: 0,
    mistaken: 0,
  };
  const over = new AbortController();

  async function loop(
    index: number,
    step: (cache: RaceCache, random: Random) => Promise<void>,
  ): Promise<void> {
    const random = createRandom(seed + index);
    while (!over.signal.aborted) {
      await step(caches[index % caches.length]!, random);
      if (done(figures)) over.abort();
    }
  }

  const reader = (cache: RaceCache, random: Random) =>
    readOnce(cache, options, choose(ledgers, random), figures, random);
  const writer = (cache: RaceCache, random: Random) =>
    changeAndClear(cache, options, ledgers, figures, random);
  const running = [
    ...Array.from({ length: options.readers }, (_, index) => loop(index, reader)),
    ...Array.from({ length: options.writers }, (_, index) => loop(options.readers + index, writer)),
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

async function readOnce(
  cache: RaceCache,
  { database }: RaceOptions,
  ledger: Ledger,
  figures: RaceFigures,
  random: Random,
): Promise<void> {
  if (random() < 0.1) await sleep(random() * 5);
  const { model, id } = ledger;
  const view = VIEWS[pick(random, VIEWS.length)]!;
  const before = { ...ledger };

  const { outcome, record } = await cache.read(model, id, view, () => database.load(model, id, view));

  figures.reads += 1;
  figures[({ hit: 'hits', miss: 'misses', bypass: 'bypasses' } as const)[outcome]] += 1;
  if (before.clearing > 0 || ledger.clearsBegun > before.clearsBegun) figures.readsDuringClear += 1;
  if (record) {
    const seen = JSON.parse(record.payload);
    const asked = seen.model === model && seen.id === id && seen.view === view;
    if (!asked || seen.version !== record.version) figures.mistaken += 1;
  }
  // "It does not exist" was true once the record was deleted at the floor or later.
  const stale = record
    ? record.version < before.floor
    : ledger.deletedAt < before.floor && ledger.deleting === 0;
  if (stale) {
    figures.stale += 1;
    const seen = `${model}:${id} ${view} version ${record?.version ?? 'absent'} (${outcome})`;
    figures.firstStale ??= `read ${figures.reads}: ${seen}, cleared at ${before.floor}`;
  }
}

async function changeAndClear(
  cache: RaceCache,
  options: RaceOptions,
  ledgers: Ledger[][],
  figures: RaceFigures,
  random: Random,
): Promise<void> {
  await sleep(random() * 8);
  const wholeModel = random() < 0.03;
  const model = ledgers[pick(random, ledgers.length)]!;
  const changed = wholeModel ? model.filter(() => random() < 0.3) : [model[pick(random, model.length)]!];
  const cleared = wholeModel ? model : changed;

  const planted: string[] = [];
  for (const ledger of changed) {
    if (options.foreign && random() < 0.3) planted.push(await plant(options.foreign, ledger, figures));
    await change(options.database, ledger, random() < 0.9);
  }
  await clearUntilAcknowledged(figures, cleared, () =>
    wholeModel ? cache.clearPattern(model[0]!.model) : cache.clearModel(changed[0]!.model, changed[0]!.id),
  );
  figures[wholeModel ? 'patternClears' : 'clears'] += 1;
  figures.unmanagedLeft += (await options.foreign?.exists(...planted, 'none')) ?? 0;
}

async function change(database: RaceDatabase, ledger: Ledger, exists: boolean): Promise<void> {
  if (!exists) ledger.deleting += 1;
  const { version } = await database.change(ledger.model, ledger.id, exists);
  ledger.committed = Math.max(ledger.committed, version);
  if (exists) return;
  ledger.deleting -= 1;
  ledger.deletedAt = Math.max(ledger.deletedAt, version);
}

/** A sender that does not give up. Only what was committed when the acknowledged attempt was sent counts. */
async function clearUntilAcknowledged(
  figures: RaceFigures,
  cleared: Ledger[],
  clear: () => Promise<number>,
): Promise<void> {
  for (const ledger of cleared) {
    ledger.clearing += 1;
    ledger.clearsBegun += 1;
  }
  for (;;) {
    const sent = cleared.map((ledger) => ledger.committed);
    try {
      await clear();
      cleared.forEach((ledger, index) => (ledger.floor = Math.max(ledger.floor, sent[index]!)));
      break;
    } catch (error) {
      if (!(error instanceof CacheError)) throw error;
      figures.refusedClears += 1;
      await sleep(20);
    }
  }
  for (const ledger of cleared) ledger.clearing -= 1;
}

/** What another program keeps for the record: its name is used once, so after the clear it must be gone. */
async function plant(foreign: Redis, { model, id }: Ledger, figures: RaceFigures): Promise<string> {
  figures.unmanagedKeys += 1;
  const key = `${model}:${id}:other-${figures.unmanagedKeys}`;
  await foreign.set(key, 'kept by another program');
  return key;
}

function choose(ledgers: Ledger[][], random: Random): Ledger {
  const model = ledgers[pick(random, ledgers.length)]!;
  return model[pick(random, model.length)]!;
}

function newLedger(model: string, id: number): Ledger {
  return { model, id, committed: 1, floor: 1, deletedAt: 0, deleting: 0, clearing: 0, clearsBegun: 0 };
}

/** Races on the records that all proofs share, and prints what was seen: `what: {…}`. */
export async function raceAndTell(
  what: string,
  options: Omit<RaceOptions, 'database' | 'models' | 'records'> & Partial<RaceOptions>,
): Promise<RaceFigures> {
  const { seed } = options;
  const database = createVersionedStore(createRandom(seed));
  const began = performance.now();
  const figures = await runRace({ database, models: ['webform', 'pathway'], records: 20, ...options });
  const seconds = Number(((performance.now() - began) / 1000).toFixed(1));
  process.stderr.write(`${what}: ${JSON.stringify({ seed, seconds, ...figures })}\n`);
  return figures;
}
