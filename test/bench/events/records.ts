import type { Redis } from 'ioredis';

const pipelined = 5_000;

/** Returns ids that no other part of the bench uses. */
export function freshIds(count: number): number[] {
  const first = next;
  next += count;
  return Array.from({ length: count }, (_, index) => first + index);
}
let next = 1_000_000;

export const keyOf = (id: number): string => `webform:${id}`;

/** Caches records as content-cache does: a hash with a payload. */
export async function cacheAll(admin: Redis, ids: readonly number[]): Promise<void> {
  const payload = JSON.stringify({ model: 'webform', title: 'Measured', body: 'x'.repeat(100) });
  for (let start = 0; start < ids.length; start += pipelined) {
    const pipeline = admin.pipeline();
    for (const id of ids.slice(start, start + pipelined))
      pipeline.hset(keyOf(id), 'full:payload', payload, 'full:version', 1);
    await pipeline.exec();
  }
}

/** Adds keys of other records, which a sweep must skip. */
export async function addOthers(admin: Redis, count: number): Promise<void> {
  for (let start = 0; start < count; start += pipelined) {
    const pipeline = admin.pipeline();
    for (let id = start; id < Math.min(start + pipelined, count); id += 1) pipeline.set(`pathway:${id}`, 'x');
    await pipeline.exec();
  }
}
