import { randomUUID } from 'node:crypto';
import { createSemaphore } from '@content-platform/chassis';
import type { View } from '@content-platform/contract';
import { type CacheConnection, CacheError, CacheUnavailable, type ReadReply } from '../connection.ts';
import { createFillWaiters, type WaitReply } from './fill-waiters.ts';

/** Time after which another reader takes over a fill. Correctness does not depend on this value. */
const leaseMs = 3000;
/** Larger payloads, in bytes of UTF-8, are not cached. */
const maxPayloadBytes = 256 * 1024;
/** READs in flight, and as many FILLs. All share a connection: a clear waits for at most this many payloads (2 MB). */
const maxInFlight = 8;
const maxQueuedMs = 2_000;
/** Batches of READs in flight, and of FILLs: the payloads of one batch (25 MB at most) already delay a clear. */
const maxBatchesInFlight = 1;
/** Few, so that reads do not wait behind the checks of a large change. */
const maxPeeks = 2;

/** The entry of a record that does not exist: no JSON text is empty. */
const absent = { version: 0, payload: '' };
/** The entry of a record that is too large. Without it, each reader would wait for a lease that is never filled. */
export const tooLarge = { version: 0, payload: 'too large' };

export interface LoadedRecord {
  version: number;
  /** the JSON text that is sent to clients; never empty */
  payload: string;
}

/** Reads the record; null if it is absent. Must run one statement at the primary for each call, outside any transaction. */
export type LoadRecord = () => Promise<LoadedRecord | null>;

/** As LoadRecord, for several records. Absent ones are not in the result. One that is left out is `tooLarge`; its lease ends. */
type LoadRecords = (ids: number[]) => Promise<ReadonlyMap<number, LoadedRecord>>;

/** Redis was unusable. */
interface Bypass {
  status: 'BYPASS';
  reason: CacheError;
}

export interface CacheRead {
  /** bypass: from the database because Redis was unusable */
  outcome: 'hit' | 'miss' | 'bypass';
  record: LoadedRecord | null;
  /** Why the read bypassed the cache. */
  reason?: CacheError;
}

export interface RecordCacheOptions {
  connection: Pick<CacheConnection, 'forReading'>;
  /** how long a record is cached, in milliseconds, plus or minus 10 % */
  ttlMs: number;
  /** how long the absence of a record is cached, in milliseconds, plus or minus 10 % */
  negativeTtlMs: number;
}

/** The key of a record's hash. Other programs' keys for the record start with this key and a colon. */
export const recordKey = (model: string, id: number): string => `${model}:${id}`;

/** The reader's side of the protocol. Keeps no copy and shares no database read: both would outlive a clear. */
export function createRecordCache(options: RecordCacheOptions) {
  const { connection, ttlMs, negativeTtlMs } = options;
  // Separate queues: the fill that readers wait for must not queue behind a thousand READs.
  const reads = createSemaphore(maxInFlight);
  const fills = createSemaphore(maxInFlight);
  const batchReads = createSemaphore(maxBatchesInFlight);
  const batchFills = createSemaphore(maxBatchesInFlight);
  const peeks = createSemaphore(maxPeeks);
  const sendRead = async (key: string, view: View) =>
    connection.forReading(key).read(key, view, randomUUID(), leaseMs);
  const waitForFill = createFillWaiters(readInTurn, leaseMs);

  /** Sends READ in turn. Throws CacheUnavailable after `maxQueuedMs` in the queue of a slow Redis. */
  function readInTurn(key: string, view: View): Promise<ReadReply> {
    const since = performance.now();
    return reads.run(async () => {
      if (performance.now() - since > maxQueuedMs) throw new CacheUnavailable('READ: Redis is too slow');
      return sendRead(key, view);
    });
  }

  /** A refused or lost FILL is harmless: this request returns what it loaded, the next request loads again. */
  function store(key: string, view: View, lease: string, record: LoadedRecord | null): Promise<unknown> {
    const ttl = record?.payload === tooLarge.payload ? 0 : record ? ttlMs : negativeTtlMs;
    const fill = { view, lease, ttlMs: Math.round(ttl * (0.9 + Math.random() * 0.2)), ...entryOf(record) };
    return orBypass(async () => connection.forReading(key).fill(key, fill));
  }

  /** Waits if another reader fills the record, then loads the record unless it is cached. */
  async function finish(key: string, view: View, reply: ReadReply | Bypass, load: LoadRecord) {
    const found = reply.status === 'WAIT' ? await orBypass(() => waitForFill(key, view)) : reply;
    const cached = cachedIn(found);
    if (cached) return cached;
    const record = await load().finally(found.status === 'LOAD_PERMIT' ? found.end : undefined);
    if (found.status === 'FILL') await fills.run(() => store(key, view, found.lease, record));
    return loaded(found, record);
  }

  return {
    /** Reads one view of a record through the cache. Rejects only with the error of `load`. */
    async read(model: string, id: number, view: View, load: LoadRecord): Promise<CacheRead> {
      const key = recordKey(model, id);
      return finish(key, view, await orBypass(() => readInTurn(key, view)), load);
    },
    /**
     * Reads records with different `ids` as `read` does, each under a lease of its own. One round trip looks up all records,
     * one statement loads the missing records, and one round trip stores them. Records that another reader fills take longer.
     */
    async readMany(model: string, ids: number[], view: View, load: LoadRecords): Promise<CacheRead[]> {
      const lookUp = async (id: number) => {
        const key = recordKey(model, id);
        return { id, key, reply: await orBypass(() => sendRead(key, view)) };
      };
      const found = await batchReads.run(() => Promise.all(ids.map(lookUp)));
      const missing = found.filter(({ reply }) => reply.status !== 'WAIT' && !cachedIn(reply));

      async function loadMissing(): ReturnType<LoadRecords> {
        if (missing.length === 0) return new Map();
        const records = await load(missing.map(({ id }) => id));
        const fill = async ({ id, key, reply }: (typeof missing)[number]) =>
          reply.status === 'FILL' && store(key, view, reply.lease, records.get(id) ?? null);
        await batchFills.run(() => Promise.all(missing.map(fill)));
        return records;
      }
      const loading = loadMissing();
      const loadTogether = createBatchLoader(load);
      return Promise.all(
        found.map(async ({ id, key, reply }) => {
          if (reply.status === 'WAIT') return finish(key, view, reply, () => loadTogether(id));
          return cachedIn(reply) ?? loaded(reply, (await loading).get(id) ?? null);
        }),
      );
    },
    /**
     * Returns what reads would now find in the cache: whether a reader may still store what it has read from the database,
     * and the version of each cached view; null: the record is absent. Throws CacheError.
     */
    async inspect(model: string, id: number) {
      const key = recordKey(model, id);
      const { isLeased, views } = await peeks.run(async () => connection.forReading(key).peek(key));
      const versions = views
        .filter(({ payloadStart }) => payloadStart !== tooLarge.payload)
        .map(({ version, payloadStart }) => (payloadStart === absent.payload ? null : version));
      return { isLeased, versions };
    },
  };
}

function entryOf(record: LoadedRecord | null): LoadedRecord {
  if (!record) return absent;
  return Buffer.byteLength(record.payload) > maxPayloadBytes ? tooLarge : record;
}

/** Returns the record if the reply contains it. */
function cachedIn(reply: WaitReply | ReadReply | Bypass): CacheRead | undefined {
  if (reply.status !== 'HIT' || reply.payload === tooLarge.payload) return undefined;
  const { version, payload } = reply;
  return { outcome: 'hit', record: payload === absent.payload ? null : { version, payload } };
}

function loaded(reply: WaitReply | ReadReply | Bypass, record: LoadedRecord | null): CacheRead {
  return reply.status === 'BYPASS'
    ? { outcome: 'bypass', record, reason: reply.reason }
    : { outcome: 'miss', record };
}

/**
 * Returns a function that loads one record. The records that are asked for while a statement runs share the next statement,
 * which begins after they hold their leases: many waits that end together must not take every connection.
 */
function createBatchLoader(load: LoadRecords) {
  let last: Promise<unknown> = Promise.resolve();
  let next: { ids: number[]; records: ReturnType<LoadRecords> } | undefined;

  function nextStatement() {
    const ids: number[] = [];
    const run = () => {
      next = undefined;
      return load(ids);
    };
    const records = last.then(run, run);
    last = records;
    return { ids, records };
  }

  return async (id: number): Promise<LoadedRecord | null> => {
    next ??= nextStatement();
    next.ids.push(id);
    return (await next.records).get(id) ?? null;
  };
}

async function orBypass<T>(work: () => Promise<T>): Promise<T | Bypass> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CacheError) return { status: 'BYPASS', reason: error };
    throw error;
  }
}
