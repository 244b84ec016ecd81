import { constants } from 'node:fs';
import type { Readable } from 'node:stream';

/** An image that exploits its decoder could create a link to any file of this process, or a pipe that is never written. */
export const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export interface StoredFile {
  key: string;
  /** Time since it was stored. */
  ageMs: number;
}

/** Stores files. We generate the keys, which contain letters, digits and dashes. */
export interface Store {
  /** The store's name. Each row of media.file has the name of the store with its files. */
  readonly name: string;
  /** Stores the file at `path` under `key`, and may move it. Once the promise resolves, the file survives a crash. */
  put(key: string, path: string): Promise<void>;
  /** Returns the file under `key`, or its bytes from `start` to `end` inclusive; undefined if it does not exist. */
  get(
    key: string,
    range?: { start: number; end: number },
    signal?: AbortSignal,
  ): Promise<Readable | undefined>;
  /** Removes the file under `key`, if it exists. */
  remove(key: string): Promise<void>;
  list(): AsyncIterable<StoredFile>;
  /** Rejects if the store cannot read or write files. */
  check(): Promise<void>;
  close(): void;
}
