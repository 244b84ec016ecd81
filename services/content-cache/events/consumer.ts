import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Consumer, EachBatchPayload, Kafka } from 'kafkajs';
import { withTimeout, type Logger } from '@content-platform/chassis';
import { cacheInvalidation } from '@content-platform/contract';
import type { ProcessBatch } from './batch.ts';
import type { Broker, PartitionOffsets } from './broker.ts';
import { createOffsetGapGuard, type OffsetGapGuard, type OnLost, type Topic } from './offset-gap-guard.ts';

interface ConsumerOptions {
  kafka: Kafka;
  broker: Broker;
  topic: string;
  group: string;
  /** The group drops a member that sends no heartbeat for this long. */
  sessionTimeoutMs: number;
  processBatch: ProcessBatch;
  onLost: OnLost;
  logger: Logger;
}

const minPauseMs = 500;
const maxPauseMs = 10_000;
/** Limit for leaving the group: a hanging broker must not delay the process's end. */
const leaveMs = 5_000;

/** Consumes the topic until the process stops. Replaces a crashed consumer, because kafkajs ends on some errors silently. */
export function startConsumer(options: ConsumerOptions) {
  const { kafka, broker, group, sessionTimeoutMs, processBatch, onLost, logger } = options;
  const stopping = new AbortController();
  const heartbeatMs = Math.ceil(sessionTimeoutMs / 10);
  // Outlives a crashed consumer, which may not have checked the offsets.
  const topic: Topic = { name: options.topic, isNew: false };
  let guard: OffsetGapGuard | undefined;
  let consuming = false;

  /** Called before the topic is created: after a failure in between, the new topic must not count as an old topic. */
  function onTopicMissing(brokers: number): void {
    topic.isNew = true;
    logger.info({ topic: topic.name, brokers }, 'the topic is missing; creating it');
  }

  function createKafkaConsumer(): Consumer {
    return kafka.consumer({
      groupId: group,
      sessionTimeout: sessionTimeoutMs,
      heartbeatInterval: heartbeatMs,
      rebalanceTimeout: Math.max(15_000, sessionTimeoutMs),
      maxWaitTimeInMs: 500,
      allowAutoTopicCreation: false,
      retry: { restartOnFailure: () => Promise.resolve(false) },
    });
  }

  function logEnd(error: unknown, pauseMs: number): void {
    const { name, message } = error as Error;
    // The message names the codec. No event is skipped: the queue grows until the records are deleted.
    if (name === 'KafkaJSNotImplemented')
      logger.error(
        { error, topic: topic.name },
        `events cannot be read (${message}): let producers compress with gzip or not at all, or set compression.type=uncompressed on the topic; then delete the unreadable records with kafka-delete-records: the consumer clears the whole cache instead`,
      );
    logger.warn({ error }, `the consumer ended; a new consumer starts in ${pauseMs} ms`);
  }

  /** Processes a batch and sends heartbeats. Ends with the first refused heartbeat; the work then commits nothing more. */
  async function eachBatch(payload: EachBatchPayload, gapGuard: OffsetGapGuard, signal: AbortSignal) {
    const ending = new AbortController();
    const alive = AbortSignal.any([ending.signal, signal]);
    async function beat(): Promise<never> {
      for (;;) {
        await sleep(heartbeatMs, undefined, { signal: alive });
        await payload.heartbeat();
      }
    }
    async function work(): Promise<void> {
      await gapGuard.ready();
      if (!payload.isStale()) await processBatch(payload, gapGuard, alive);
    }
    try {
      await Promise.race([work(), beat()]);
    } catch (error) {
      // When this process stops, the batch stays uncommitted and is delivered again.
      if (!signal.aborted) throw error;
    } finally {
      ending.abort();
    }
  }

  /** Connects the guard to the consumer's events. `crashed` rejects when the consumer crashes. */
  function watch(consumer: Consumer, signal: AbortSignal) {
    const gapGuard = createOffsetGapGuard({ consumer, broker, topic, logger, signal, onLost });
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      const partitions = payload.memberAssignment[topic.name] ?? [];
      logger.info({ partitions }, 'joined the consumer group');
      consuming = false;
      gapGuard.joined(partitions).then(
        () => (consuming = true),
        () => undefined,
      );
    });
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload: { batchSize, partition, lastOffset } }) => {
      if (batchSize > 0) return;
      // If this fails, the next event of the partition commits it.
      void gapGuard.skipAborted(partition, Number(lastOffset) + 1).catch(() => undefined);
    });
    const { promise: crashed, reject } = Promise.withResolvers<never>();
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    crashed.catch(() => undefined);
    return { gapGuard, crashed };
  }

  /** Runs one consumer: rejects when it crashes, resolves when the process stops. */
  async function runOnce(stopped: Promise<unknown>): Promise<void> {
    // When the process stops, this does not wait for an unreachable Kafka.
    await Promise.race([broker.ensureTopic(onTopicMissing), stopped]);
    if (stopping.signal.aborted) return;
    const ending = new AbortController();
    const signal = AbortSignal.any([stopping.signal, ending.signal]);
    const consumer = createKafkaConsumer();
    const { gapGuard, crashed } = watch(consumer, signal);
    guard = gapGuard;
    async function consume(): Promise<never> {
      await consumer.connect();
      await consumer.subscribe({ topic: topic.name, fromBeginning: true });
      await consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        partitionsConsumedConcurrently: cacheInvalidation.partitions,
        eachBatch: (payload) => eachBatch(payload, gapGuard, signal),
      });
      return crashed;
    }
    try {
      await Promise.race([consume(), stopped]);
    } finally {
      consuming = false;
      guard = undefined;
      ending.abort();
      const left = consumer.disconnect().catch(() => undefined);
      await withTimeout(left, leaveMs);
    }
  }

  async function run(): Promise<void> {
    let pauseMs = minPauseMs;
    while (!stopping.signal.aborted) {
      const start = performance.now();
      const ended = new AbortController();
      // Not one promise for all consumers: it would keep the error of each in memory.
      const stopped = once(stopping.signal, 'abort', { signal: ended.signal }).catch(() => undefined);
      await runOnce(stopped).catch((error: unknown) => logEnd(error, pauseMs));
      ended.abort();
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      const wasStable = performance.now() - start > 60_000;
      pauseMs = wasStable ? minPauseMs : Math.min(pauseMs * 2, maxPauseMs);
    }
  }
  const running = run();

  return {
    /** Whether the consumer is in the group, and everything was cleared after a loss that it found when it joined. */
    isConsuming: () => consuming,
    checkOffsets: (offsets: readonly PartitionOffsets[]) => guard?.checkOffsets(offsets),
    /** Leaves the group. Batches in progress end without a commit. */
    async stop(): Promise<void> {
      stopping.abort();
      await withTimeout(running, leaveMs + 1_000);
    },
  };
}
