import type { Readable } from 'node:stream';

/** Bytes of a file, both ends included. */
export interface ByteRange {
  start: number;
  end: number;
}

export interface StoredFile {
  key: string;
  /** Since it was put there. */
  ageMs: number;
}

/** Where files lie. A key is letters, digits, dots and dashes, made by us. */
export interface Store {
  /** Which store it is, for the rows of its files. */
  readonly name: string;
  /** Keeps the file at `path` under `key`; once it resolves, the file outlives a crash. It may be gone from `path` then. */
  put(key: string, path: string): Promise<void>;
  /** What is kept under `key`, or a part of it; undefined when nothing is. */
  get(key: string, range?: ByteRange, signal?: AbortSignal): Promise<Readable | undefined>;
  /** Removes what is kept under `key`, if anything is. */
  remove(key: string): Promise<void>;
  list(): AsyncIterable<StoredFile>;
  /** Resolves when files can be put and read. */
  check(): Promise<void>;
  close(): void;
}
