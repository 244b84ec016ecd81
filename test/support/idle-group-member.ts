import { setTimeout as sleep } from 'node:timers/promises';
import { cacheInvalidation } from '@content-platform/contract';
import { kafkaClient } from './events.ts';
import { until } from './wait.ts';

/**
 * Joins the consumer group of events as a live member that processes nothing. Resolves once it has partitions, with a
 * function that leaves the group.
 */
export async function joinAsIdleMember(): Promise<() => Promise<void>> {
  const consumer = kafkaClient().consumer({ groupId: cacheInvalidation.group, heartbeatInterval: 500 });
  const leaving = new AbortController();
  let partitions = 0;
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    partitions = payload.memberAssignment[cacheInvalidation.topic]?.length ?? 0;
  });
  await consumer.connect();
  await consumer.subscribe({ topic: cacheInvalidation.topic });
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    async eachBatch({ heartbeat }) {
      while (!leaving.signal.aborted) {
        await heartbeat();
        await sleep(250, undefined, { signal: leaving.signal }).catch(() => undefined);
      }
    },
  });
  await until(
    'it shares the partitions with another',
    () => partitions > 0 && partitions < cacheInvalidation.partitions,
  );
  return async () => {
    leaving.abort();
    await consumer.disconnect();
  };
}
