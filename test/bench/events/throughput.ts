import { setTimeout as sleep } from 'node:timers/promises';
import { cacheInvalidation } from '@content-platform/contract';
import type { Ground, UnmanagedKeys } from './ground.ts';
import { cacheAll, freshIds, keyOf } from './records.ts';

const { topic } = cacheInvalidation;
const perSend = 2_000;
const pollMs = 10;
const limitMs = 120_000;

export interface Throughput {
  events: number;
  perSecond: number;
}

/** Sends events about distinct records. */
async function produce({ producer }: Ground, ids: readonly number[]): Promise<void> {
  for (let start = 0; start < ids.length; start += perSend) {
    const messages = ids.slice(start, start + perSend).map((id) => ({
      key: keyOf(id),
      value: JSON.stringify({ model: 'webform', id, occurred_at: new Date().toISOString() }),
    }));
    await producer.send({ topic, acks: -1, messages });
  }
}

/** Resolves when the number of keys meets `isMet`. */
async function untilSize({ redis }: Ground, isMet: (size: number) => boolean): Promise<void> {
  const end = performance.now() + limitMs;
  while (!isMet(await redis.admin.dbsize())) {
    if (performance.now() > end) throw new Error('the events are not cleared');
    await sleep(pollMs);
  }
}

/**
 * So many events about distinct cached records wait when the one consumer starts. It is timed from the first record
 * that is gone to the last: what it takes to start and to join is not counted.
 */
export async function measureThroughput(
  ground: Ground,
  unmanagedKeys: UnmanagedKeys,
  count: number,
): Promise<Throughput> {
  const ids = freshIds(count);
  await ground.end();
  const others = await ground.redis.admin.dbsize();
  await cacheAll(ground.redis.admin, ids);
  await produce(ground, ids);

  await ground.start(unmanagedKeys, false);
  await untilSize(ground, (size) => size < others + count);
  const start = performance.now();
  await untilSize(ground, (size) => size === others);
  return { events: count, perSecond: (count / (performance.now() - start)) * 1_000 };
}
