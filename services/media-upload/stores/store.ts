import type { Readable } from 'node:stream';

/** Offsets of the first and the last byte. */
export interface ByteRange {
  start: number;
  end: number;
}

export interface StoredFile {
  key: string;
  /** Time since it was stored. */
  ageMs: number;
}

/** Where files are stored. A key has letters, digits, dots and dashes, and is made by us. */
export interface Store {
  /** Names the store in the rows of its files. */
  readonly name: string;
  /** Stores the file at `path` under `key`. Once it resolves, the file survives a crash; `path` may not exist any more. */
  put(key: string, path: string): Promise<void>;
  /** The file under `key`, or a part of it; undefined if there is none. */
  get(key: string, range?: ByteRange, signal?: AbortSignal): Promise<Readable | undefined>;
  /** Removes the file under `key`, if there is one. */
  remove(key: string): Promise<void>;
  list(): AsyncIterable<StoredFile>;
  /** Rejects if files cannot be stored and read. */
  check(): Promise<void>;
  close(): void;
}
