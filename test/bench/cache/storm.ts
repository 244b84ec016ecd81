import type { Records } from './records.ts';
import type { Service } from './service.ts';

export const readers = 1_000;

export interface Storm {
  /** Number of database reads. */
  reads: number;
  /** Time from the first request to the last reply. */
  ms: number;
}

/** Sends a thousand simultaneous reads of a new record, spread over the processes. */
export async function storm(services: readonly Service[], records: Records): Promise<Storm> {
  const [warm, cold] = (await records.make(2)) as [number, number];
  const all = (id: number) =>
    Promise.all(Array.from({ length: readers }, (_, n) => services[n % services.length]!.read(id)));
  // Opens every connection in advance.
  await services[0]!.read(warm);
  await all(warm);
  const before = await records.reads();
  const start = performance.now();
  await all(cold);
  return { reads: (await records.reads()) - before, ms: performance.now() - start };
}
