import { randomUUID } from 'node:crypto';
import { createSemaphore } from '@content-platform/chassis';
import type { View } from '@content-platform/contract';
import type { CacheConnection } from '../connection.ts';
import { CacheError } from '../errors.ts';
import { createFillWaiters, type WaitReply } from './fill-waiters.ts';

/** Time after which another reader takes over a fill. Correctness does not depend on this value. */
const leaseMs = 3000;
/** Larger payloads, in bytes of UTF-8, are not cached. */
const maxPayloadBytes = 256 * 1024;
/**
 * READs in flight, and FILLs. One connection carries all commands in order, so a clear waits for at most this many
 * payloads (2 MB). Redis executes one command at a time anyway.
 */
const maxInFlight = 8;
/** Few, so that reads do not wait behind the checks of a large change. */
const maxPeeks = 2;

/** The entry of a record that does not exist: no JSON text is empty. */
const absent = { version: 0, payload: '' };
/**
 * The entry of a record that is too large: its readers read the database immediately. Without this entry each reader
 * would wait for a lease that is never filled. A clear deletes the entry like a payload.
 */
const tooLarge = { version: 0, payload: 'too large' };

export interface LoadedRecord {
  version: number;
  /** the JSON text that is sent to clients; never empty */
  payload: string;
}

/**
 * Reads the record from the database, null when it does not exist: from the primary, with one statement outside any
 * transaction. The result must not be shared with another call, which may have begun before a clear.
 */
export type LoadRecord = () => Promise<LoadedRecord | null>;

export interface CacheRead {
  /** hit: from the cache; miss: from the database; bypass: from the database because Redis was unusable */
  outcome: 'hit' | 'miss' | 'bypass';
  record: LoadedRecord | null;
  /** why the read bypassed the cache */
  reason?: CacheError;
}

export interface RecordCacheOptions {
  connection: Pick<CacheConnection, 'forReading'>;
  /** how long a record is cached, in milliseconds, plus or minus 10 % */
  ttlMs: number;
  /** how long the absence of a record is cached, in milliseconds, plus or minus 10 % */
  negativeTtlMs: number;
}

/**
 * The key of a record's hash. Other programs' keys for the record start with this key and a colon.
 *
 * @param model a known model: ASCII, no colon
 * @param id 1 to 2^53-1
 */
export function recordKey(model: string, id: number): string {
  return `${model}:${id}`;
}

interface CachedState {
  /** Whether a reader may still store what it has read from the database. */
  isLeased: boolean;
  /** The version of each cached view; null: the record is absent. */
  versions: (number | null)[];
}

/**
 * The reader's side of the protocol. This process keeps no copy in memory, and no reader joins another reader's database
 * read: both would outlive a clear.
 */
export function createRecordCache(options: RecordCacheOptions) {
  const { connection, ttlMs, negativeTtlMs } = options;
  // Separate queues: the fill that readers wait for must not queue behind a thousand READs.
  const reads = createSemaphore(maxInFlight);
  const fills = createSemaphore(maxInFlight);
  const peeks = createSemaphore(maxPeeks);
  const sendRead = (key: string, view: View) =>
    reads.run(async () => connection.forReading(key).read(key, view, randomUUID(), leaseMs));
  const waitForFill = createFillWaiters(sendRead, leaseMs);

  async function lookUp(key: string, view: View): Promise<WaitReply> {
    const reply = await sendRead(key, view);
    return reply.status === 'WAIT' ? waitForFill(key, view) : reply;
  }

  async function store(key: string, view: View, lease: string, record: LoadedRecord | null): Promise<void> {
    const ttl = record ? ttlMs : negativeTtlMs;
    const fill = { view, lease, ttlMs: Math.round(ttl * (0.9 + Math.random() * 0.2)), ...entryOf(record) };
    // A refused or lost FILL is harmless: this request returns what it loaded, the next request loads again.
    await unlessCacheError(() => fills.run(async () => connection.forReading(key).fill(key, fill)));
  }

  return {
    /**
     * Reads one view of a record through the cache: every change that was committed before an acknowledged clear was
     * sent is in every read that starts after the acknowledgement. Rejects only with the error of `load`.
     */
    async read(model: string, id: number, view: View, load: LoadRecord): Promise<CacheRead> {
      const key = recordKey(model, id);
      const found = await unlessCacheError(() => lookUp(key, view));
      if (found instanceof CacheError) return { outcome: 'bypass', record: await load(), reason: found };
      if (found.status === 'HIT' && found.payload !== tooLarge.payload) {
        const { version, payload } = found;
        return { outcome: 'hit', record: payload === absent.payload ? null : { version, payload } };
      }
      const record = await load().finally(found.status === 'LOAD_PERMIT' ? found.end : undefined);
      if (found.status === 'FILL') await store(key, view, found.lease, record);
      return { outcome: 'miss', record };
    },
    /** Returns what reads would now find in the cache. @throws CacheError */
    async inspect(model: string, id: number): Promise<CachedState> {
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

async function unlessCacheError<T>(work: () => Promise<T>): Promise<T | CacheError> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CacheError) return error;
    throw error;
  }
}
