import { setTimeout as sleep } from 'node:timers/promises';
import type { Records } from './records.ts';
import type { Service } from './service.ts';

const writers = 4;
const readers = 16;
/** Maximum pause between an acknowledged clear and the record's next change, in ms. */
const pauseMs = 40;

export interface Race {
  clears: number;
  reads: number;
  /** Number of reads that began after an acknowledged clear and returned a version older than the change before it. */
  stale: number;
}

const oneOf = <T>(all: readonly T[]): T => all[Math.floor(Math.random() * all.length)]!;

/** Each writer changes and clears its own record through any process; readers read any record through any process. */
export async function race(services: readonly Service[], records: Records, seconds: number): Promise<Race> {
  const ids = await records.make(writers);
  const acknowledged = new Map(ids.map((id) => [id, 1]));
  const end = performance.now() + seconds * 1_000;
  const found = { clears: 0, reads: 0, stale: 0 };

  async function write(id: number): Promise<void> {
    while (performance.now() < end) {
      const version = await records.change(id);
      await oneOf(services).clear(id);
      acknowledged.set(id, version);
      found.clears += 1;
      await sleep(Math.random() * pauseMs);
    }
  }
  async function read(): Promise<void> {
    while (performance.now() < end) {
      const id = oneOf(ids);
      const least = acknowledged.get(id)!;
      const version = await oneOf(services).read(id);
      found.reads += 1;
      if (version < least) found.stale += 1;
    }
  }
  await Promise.all([...ids.map(write), ...Array.from({ length: readers }, read)]);
  return found;
}
