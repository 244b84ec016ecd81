import { setTimeout as sleep } from 'node:timers/promises';
import type { Records } from './records.ts';
import type { Service } from './service.ts';

const writers = 4;
const readers = 16;
/** Ms, at most, from an acknowledged clear to the next change of the record. */
const pauseMs = 40;

export interface Race {
  clears: number;
  reads: number;
  /** Reads that began after a clear was acknowledged and did not see what had been committed before it was sent. */
  stale: number;
}

const oneOf = <T>(all: readonly T[]): T => all[Math.floor(Math.random() * all.length)]!;

/** Each writer changes a record of its own and clears it, by any of the processes; readers read any of them by any. */
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
