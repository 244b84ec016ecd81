import { setTimeout as sleep } from 'node:timers/promises';
import { cacheInvalidation } from '@content-platform/contract';
import type { EventsContext, UnmanagedKeys } from './context.ts';
import { cacheAll, freshIds, keyOf } from './records.ts';

const { topic } = cacheInvalidation;
const perSend = 2_000;
const pollMs = 10;
const limitMs = 120_000;

async function produce({ producer }: EventsContext, ids: readonly number[]): Promise<void> {
  for (let start = 0; start < ids.length; start += perSend) {
    const messages = ids.slice(start, start + perSend).map((id) => ({
      key: keyOf(id),
      value: JSON.stringify({ model: 'webform', id, occurred_at: new Date().toISOString() }),
    }));
    await producer.send({ topic, acks: -1, messages });
  }
}

/** Resolves when the number of keys meets `isMet`. */
async function untilSize({ redis }: EventsContext, isMet: (size: number) => boolean): Promise<void> {
  const end = performance.now() + limitMs;
  while (!isMet(await redis.admin.dbsize())) {
    if (performance.now() > end) throw new Error('the events are not cleared');
    await sleep(pollMs);
  }
}

/** Measures how fast one consumer clears `count` waiting events: from the first deleted key to the last. */
export async function measureThroughput(context: EventsContext, unmanagedKeys: UnmanagedKeys, count: number) {
  const ids = freshIds(count);
  await context.end();
  const others = await context.redis.admin.dbsize();
  await cacheAll(context.redis.admin, ids);
  await produce(context, ids);

  await context.start(unmanagedKeys, false);
  await untilSize(context, (size) => size < others + count);
  const start = performance.now();
  await untilSize(context, (size) => size === others);
  return { events: count, perSecond: (count / (performance.now() - start)) * 1_000 };
}
export type Throughput = Awaited<ReturnType<typeof measureThroughput>>;
