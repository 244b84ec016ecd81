import { randomUUID } from 'node:crypto';
import { createSlots } from '@content-platform/chassis';
import type { CacheConnection } from './connection.ts';
import { CacheError } from './errors.ts';
import { recordKey, type View } from './keys.ts';
import { createWaitingRoom, type WaitReply } from './waiting-room.ts';

/** How long one reader may take to fill before the next one takes over. The promise does not hang on it. */
const LEASE_MS = 3000;
/** The most bytes of UTF-8 that are cached. */
const MAX_PAYLOAD_BYTES = 256 * 1024;
/**
 * READs at a time, and FILLs. One connection carries everything, in order: a clear has at most so many payloads, 2 MB,
 * before it, however many readers there are. Redis does one at a time anyway.
 */
const IN_FLIGHT = 8;

/** What stands in the cache for a record that does not exist: no JSON text is empty. */
const ABSENT = { version: 0, payload: '' };
/**
 * What stands there for a record that is too large: who finds it reads the database at once. Without it each reader
 * would wait for a lease that is never filled. A clear takes it away as it does a payload.
 */
const TOO_LARGE = { version: 0, payload: 'too large' };

export interface LoadedRecord {
  version: number;
  /** the JSON text that is sent to clients; never empty */
  payload: string;
}

/**
 * Reads the record from the database, null when it does not exist: from the primary, by a statement of its own outside
 * any transaction. It must not share its result with another call: that one may have begun before a clear.
 */
export type LoadRecord = () => Promise<LoadedRecord | null>;

export interface CacheRead {
  /** hit: from the cache; miss: from the database; bypass: from the database, as Redis could not be used */
  outcome: 'hit' | 'miss' | 'bypass';
  record: LoadedRecord | null;
  /** why the cache was passed by */
  reason?: CacheError;
}

export interface RecordCacheOptions {
  connection: Pick<CacheConnection, 'forReading'>;
  /** how long a record is cached, in milliseconds, give or take a tenth */
  ttlMs: number;
  /** the same for the fact that a record does not exist */
  negativeTtlMs: number;
}

export interface RecordCache {
  /**
   * Reads one view of a record through the cache: whatever was committed before an acknowledged clear was sent is in
   * every read that starts after the acknowledgement. Throws only what `load` throws.
   */
  read(model: string, id: number, view: View, load: LoadRecord): Promise<CacheRead>;
  /**
   * The versions of the record that a read would find in the cache now, null for 'does not exist'; each view may have
   * its own. Throws a CacheError.
   */
  cachedVersions(model: string, id: number): Promise<(number | null)[]>;
}

/**
 * The reader's side of the protocol. There is no second copy in this process's memory, and no reader joins the
 * database read of another: both would outlive a clear.
 */
export function createRecordCache(options: RecordCacheOptions): RecordCache {
  const { connection, ttlMs, negativeTtlMs } = options;

  const reads = createSlots(IN_FLIGHT);
  // Of their own: a fill that queued behind a thousand READs would keep those waiting.
  const fills = createSlots(IN_FLIGHT);
  const peeks = createSlots(IN_FLIGHT);
  const ask = (key: string, view: View) =>
    reads.run(async () => connection.forReading(key).read(key, view, randomUUID(), LEASE_MS));
  const waitingRoom = createWaitingRoom(ask);

  /** A hit, a lease to fill under, or a turn: another reader fills, and has not in time. */
  async function lookUp(key: string, view: View): Promise<WaitReply> {
    const reply = await ask(key, view);
    return reply.status === 'WAIT' ? waitingRoom.wait(key, view, LEASE_MS) : reply;
  }

  async function store(key: string, view: View, lease: string, record: LoadedRecord | null): Promise<void> {
    const ttl = record ? ttlMs : negativeTtlMs;
    const spread = Math.round(ttl * (0.9 + Math.random() * 0.2));
    const fill = { view, lease, ttlMs: spread, ...entryOf(record) };
    // A refused or lost FILL harms nobody: this request is answered with what it read, the next one reads again.
    await unlessCacheError(() => fills.run(async () => connection.forReading(key).fill(key, fill)));
  }

  return {
    async read(model, id, view, load) {
      const key = recordKey(model, id);
      const found = await unlessCacheError(() => lookUp(key, view));
      if (found instanceof CacheError) return { outcome: 'bypass', record: await load(), reason: found };
      if (found.status === 'HIT' && found.payload !== TOO_LARGE.payload) {
        const { version, payload } = found;
        return { outcome: 'hit', record: payload === ABSENT.payload ? null : { version, payload } };
      }
      const record = await load().finally(found.status === 'TURN' ? found.end : undefined);
      if (found.status === 'FILL') await store(key, view, found.lease, record);
      return { outcome: 'miss', record };
    },
    async cachedVersions(model, id) {
      const key = recordKey(model, id);
      const entries = await peeks.run(async () => connection.forReading(key).peek(key));
      return entries
        .filter(({ beginning }) => beginning !== TOO_LARGE.payload)
        .map(({ version, beginning }) => (beginning === ABSENT.payload ? null : version));
    },
  };
}

/** What is cached for a record. */
function entryOf(record: LoadedRecord | null): LoadedRecord {
  if (!record) return ABSENT;
  return Buffer.byteLength(record.payload) > MAX_PAYLOAD_BYTES ? TOO_LARGE : record;
}

async function unlessCacheError<T>(work: () => Promise<T>): Promise<T | CacheError> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CacheError) return error;
    throw error;
  }
}
