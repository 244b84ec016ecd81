import { setTimeout as sleep } from 'node:timers/promises';
import type { Kafka } from 'kafkajs';
import { cacheInvalidation } from '@content-platform/contract';
import { createProcessBatch, type BatchDeps } from './batch.ts';
import { createBroker } from './broker.ts';
import { createConsumer } from './consumer.ts';
import type { LostPartition } from './continuity.ts';
import { createQueue } from './queue.ts';

/** Who asks whether all is done waits so long at most. Ms. */
const askMs = 5_000;

export interface EventsOptions extends BatchDeps {
  kafka: Kafka;
  topic?: string;
  group?: string;
  /** Longer than a pause of the process, short enough that a dead one is soon replaced. Ms. */
  sessionTimeoutMs?: number;
}

export type Events = ReturnType<typeof createEvents>;

/** Everything that has to do with the topic `cache-invalidation`. */
export function createEvents(options: EventsOptions) {
  const { kafka, clearing, invalidator, jobs, metrics, logger } = options;
  const {
    topic = cacheInvalidation.topic,
    group = cacheInvalidation.group,
    sessionTimeoutMs = 10_000,
  } = options;
  const broker = createBroker(kafka, topic, group);

  /** Nobody knows which events those were, so everything is cleared; if there were any, a failed job says so. */
  async function onLost(lost: LostPartition[], topicIsNew: boolean): Promise<void> {
    logger.warn({ lost }, 'events may have been lost: everything is cleared');
    await invalidator.clearAll(clearing, { source: 'recovery', requestedBy: 'content-cache' });
    // Where nothing has ever been, nothing was lost.
    const held = lost.filter(({ committed, high, position }) => Math.max(committed, high, position) > 0);
    if (topicIsNew || held.length === 0) return;
    const list = held.map(
      ({ partition, committed, low }) =>
        `${partition} (${committed < 0 ? 'none' : committed}, oldest ${low})`,
    );
    await jobs.add({
      class: 'events_lost',
      error: `Events may have been lost; everything was cleared. Partitions and their committed offsets: ${list.join(', ')}.`,
      topic,
      partition: held[0]!.partition,
      offset: String(held[0]!.low),
      key: null,
      value: null,
      // No message stands for it: each loss that is noticed is a job of its own.
      messageAt: String(Date.now()),
      model: null,
    });
    metrics.failedJobs.inc({ class: 'events_lost' });
  }

  const processBatch = createProcessBatch(options);
  const consumer = createConsumer({
    kafka,
    broker,
    topic,
    group,
    sessionTimeoutMs,
    processBatch,
    onLost,
    logger,
  });
  const queue = createQueue({ broker, metrics, onOffsets: consumer.look, logger });

  return {
    /** Connects in the background, now or whenever Kafka is there. */
    start(): void {
      consumer.start();
      queue.start();
    },
    /** Rejects while Kafka is away or nothing is consumed. */
    async check(): Promise<void> {
      if (!queue.isMeasured()) throw new Error('Kafka does not answer');
      if (!consumer.isConsuming()) throw new Error('nothing is consumed');
    },
    /** Whether every event that the broker has is processed; false while Kafka does not answer. */
    isDone: async (): Promise<boolean> =>
      (await Promise.race([queue.next(), sleep(askMs, undefined, { ref: false })])) === 0,
    async stop(): Promise<void> {
      queue.stop();
      await consumer.stop();
      await broker.close();
    },
  };
}
