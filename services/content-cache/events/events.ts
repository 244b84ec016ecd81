import type { Kafka } from 'kafkajs';
import { retryUntilAborted, withTimeout } from '@content-platform/chassis';
import { cacheInvalidation } from '@content-platform/contract';
import { createProcessBatch, type BatchDeps } from './batch.ts';
import { createBroker } from './broker.ts';
import { startConsumer } from './consumer.ts';
import type { LostPartition } from './offset-gap-guard.ts';
import { watchQueue } from './queue.ts';

/** Limit for isQueueEmpty(), for which the check of unannounced changes waits. */
const isQueueEmptyMs = 1_000;

export interface EventsOptions extends BatchDeps {
  kafka: Kafka;
  topic?: string | undefined;
  group?: string | undefined;
  /** Longer than a pause of the process, short enough that a dead process is soon replaced. Default: 10 s. */
  sessionTimeoutMs?: number | undefined;
}

/** Consumes the topic `cache-invalidation` and measures its queue, now or as soon as Kafka is reachable. */
export function startEvents(options: EventsOptions) {
  const { kafka, clearer, invalidator, jobs, metrics, logger } = options;
  const {
    topic = cacheInvalidation.topic,
    group = cacheInvalidation.group,
    sessionTimeoutMs = 10_000,
  } = options;
  const broker = createBroker(kafka, topic, group);

  /** Clears everything: the lost events are unknown. Stores a failed job unless the topic is new or had no events. */
  async function onLost(lost: LostPartition[], topicIsNew: boolean, signal: AbortSignal): Promise<void> {
    const requester = { source: 'recovery', requestedBy: 'content-cache', since: Date.now() } as const;
    await invalidator.clearAll(clearer, requester);
    if (!topicIsNew) logger.warn({ lost }, 'events may have been lost; the whole cache was cleared');
    const used = lost.filter(({ committed, high, position }) => Math.max(committed, high, position) > 0);
    if (topicIsNew || used.length === 0) return;
    const list = used.map(
      ({ partition, committed, low }) =>
        `${partition} (${committed < 0 ? 'none' : committed}, oldest ${low})`,
    );
    const job = {
      class: 'events_lost' as const,
      error: `Events may have been lost; everything was cleared. Partitions and their committed offsets: ${list.join(', ')}.`,
      topic,
      partition: used[0]!.partition,
      offset: String(used[0]!.low),
      key: null,
      value: null,
      // Part of the unique key: offsets of a recreated topic start at 0 again. A second open job is not stored.
      messageAt: String(Date.now()),
      model: null,
    };
    // Retried alone: a repeated check would empty the cache each time.
    const isNew = await retryUntilAborted(
      signal,
      () => jobs.add(job),
      (error) => logger.warn({ error }, 'failed job not stored; retrying'),
    );
    if (isNew) metrics.failedJobs.inc({ class: 'events_lost' });
  }

  const processBatch = createProcessBatch(options);
  const consumer = startConsumer({
    kafka,
    broker,
    topic,
    group,
    sessionTimeoutMs,
    processBatch,
    onLost,
    logger,
  });
  const queue = watchQueue({ broker, metrics, onOffsets: consumer.checkOffsets, logger });

  return {
    /** Rejects while Kafka is unreachable or the consumer is not in its group. */
    async check(): Promise<void> {
      if (!queue.isMeasured()) throw new Error('Kafka does not respond');
      if (!consumer.isConsuming()) throw new Error('the consumer is not in its group');
    },
    /** Returns the number of uncommitted events at the last measurement; 0 before the first. */
    waitingEvents: queue.lastLength,
    /** Whether every event of the last measurement is processed; false while Kafka does not answer. */
    isQueueEmpty: async (): Promise<boolean> =>
      (await withTimeout(queue.countRemaining(), isQueueEmptyMs).catch(() => undefined)) === 0,
    async stop(): Promise<void> {
      void queue.stop();
      await consumer.stop();
      await broker.close();
    },
  };
}
