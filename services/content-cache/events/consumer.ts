import { setTimeout as sleep } from 'node:timers/promises';
import type { Consumer, EachBatchPayload, Kafka } from 'kafkajs';
import type { Logger } from '@content-platform/chassis';
import { cacheInvalidation } from '@content-platform/contract';
import type { ProcessBatch } from './batch.ts';
import type { Broker, PartitionOffsets } from './broker.ts';
import { createContinuity, type Continuity, type OnLost } from './continuity.ts';
import { withHeartbeats } from './heartbeats.ts';

export interface ConsumerOptions {
  kafka: Kafka;
  broker: Broker;
  topic: string;
  group: string;
  /** The group gives a member up that is silent for so long. Ms. */
  sessionTimeoutMs: number;
  processBatch: ProcessBatch;
  /** Makes up for events that may have been lost. */
  onLost: OnLost;
  logger: Logger;
}

const firstPauseMs = 500;
const longestPauseMs = 10_000;
/** Leaving the group takes so long at most: a broker that hangs does not keep the process. */
const leaveMs = 5_000;

const readableCompression = ['uncompressed', 'gzip'];
/** What is said of batches that kafkajs has no codec for. */
export const compressionAdvice =
  'events compressed with snappy, lz4 or zstd cannot be read: producers must use gzip or none, or the topic compression.type=uncompressed';

/**
 * Consumes the topic for as long as the process lives. kafkajs gives up on some errors, silently; so it is never left
 * to restart by itself: a consumer that crashed is made anew here, with a growing pause.
 */
export function createConsumer(options: ConsumerOptions) {
  const { kafka, broker, topic, group, sessionTimeoutMs, processBatch, onLost, logger } = options;
  const stopping = new AbortController();
  const stopped = new Promise<undefined>((resolve) => {
    stopping.signal.addEventListener('abort', () => resolve(undefined));
  });
  const heartbeatMs = Math.ceil(sessionTimeoutMs / 10);
  /** It was missing, and has not been checked since: a consumer that crashes before that leaves it so. */
  let topicIsNew = false;
  let compressionKnown = false;
  let continuity: Continuity | undefined;
  let consuming = false;
  let running: Promise<void> | undefined;

  /** Not once it can be used: what goes wrong in between must not make an old topic of it. */
  function onTopicMissing(): void {
    topicIsNew = true;
    logger.info({ topic }, 'the topic is missing and is made');
  }

  function make(): Consumer {
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

  /** A topic that others made may keep what we cannot read: said once, before it happens. */
  async function lookAtCompression(): Promise<void> {
    if (compressionKnown) return;
    // Who may read the topic need not have the right to read its settings.
    const compression = await broker.compression().catch(() => undefined);
    compressionKnown = true;
    if (compression === undefined || readableCompression.includes(compression)) return;
    logger.warn({ topic, 'compression.type': compression }, compressionAdvice);
  }

  /** Says why a consumer ended. Where it cannot read an event nothing is skipped: the queue grows until it can. */
  function logEnd(error: unknown, pause: number): void {
    const { name } = error as Error;
    if (name === 'KafkaJSNotImplemented') {
      const wayOut =
        'delete the records up to those with kafka-delete-records, and everything is cleared instead';
      logger.error({ error, topic }, `${compressionAdvice}; ${wayOut}`);
    }
    logger.warn({ error }, `the consumer ended; a new one is made in ${pause} ms`);
  }

  async function eachBatch(
    payload: EachBatchPayload,
    watched: Continuity,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await withHeartbeats(payload.heartbeat, heartbeatMs, signal, async (alive) => {
        await watched.ready();
        if (!payload.isStale()) await processBatch(payload, watched, alive);
      });
    } catch (error) {
      // We stop: the batch was not committed and will be delivered again. Anything else is the group's.
      if (!signal.aborted) throw error;
    }
  }

  /** Follows what a consumer goes through; `crashed` rejects when it is over. */
  function follow(consumer: Consumer, signal: AbortSignal) {
    const isNew = topicIsNew;
    const onChecked = () => void (topicIsNew = false);
    const watched = createContinuity({ consumer, broker, topic, isNew, onChecked, onLost, logger, signal });
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      const partitions = payload.memberAssignment[topic] ?? [];
      logger.info({ partitions }, 'joined the consumer group');
      consuming = false;
      watched.joined(partitions).then(
        () => (consuming = true),
        () => undefined,
      );
    });
    // Of an aborted transaction nothing is left: kafkajs hands no batch on, and commits only where it does so by itself.
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload: { batchSize, partition, lastOffset } }) => {
      if (batchSize === 0) watched.passOver(partition, Number(lastOffset) + 1);
    });
    const crashed = new Promise<never>((_, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    });
    crashed.catch(() => undefined);
    return { watched, crashed };
  }

  async function consume(consumer: Consumer, watched: Continuity, signal: AbortSignal): Promise<void> {
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: cacheInvalidation.partitions,
      eachBatch: (payload) => eachBatch(payload, watched, signal),
    });
  }

  /** One life of a consumer: ends with a throw when it crashed, and without one when the process stops. */
  async function live(): Promise<void> {
    // What waits for a Kafka that is away is left behind when the process stops.
    await Promise.race([broker.ensureTopic(onTopicMissing), stopped]);
    if (stopping.signal.aborted) return;
    await Promise.race([lookAtCompression(), stopped]);
    const over = new AbortController();
    const signal = AbortSignal.any([stopping.signal, over.signal]);
    const consumer = make();
    const { watched, crashed } = follow(consumer, signal);
    continuity = watched;
    try {
      await Promise.race([consume(consumer, watched, signal).then(() => crashed), stopped]);
    } finally {
      consuming = false;
      continuity = undefined;
      over.abort();
      const left = consumer.disconnect().catch(() => undefined);
      await Promise.race([left, sleep(leaveMs, undefined, { ref: false })]);
    }
  }

  async function run(): Promise<void> {
    let pause = firstPauseMs;
    while (!stopping.signal.aborted) {
      const start = performance.now();
      try {
        await live();
      } catch (error) {
        logEnd(error, pause);
      }
      await sleep(pause, undefined, { signal: stopping.signal }).catch(() => undefined);
      const lasted = performance.now() - start > 60_000;
      pause = lasted ? firstPauseMs : Math.min(pause * 2, longestPauseMs);
    }
  }

  return {
    start(): void {
      running ??= run();
    },
    /** In the group, with nothing lost that has not been made up for. */
    isConsuming: () => consuming,
    /** Offsets that were measured: a loss among them is made up for. */
    look: (offsets: readonly PartitionOffsets[]) => continuity?.look(offsets),
    /** Leaves the group. What is under way ends without a commit. */
    async stop(): Promise<void> {
      stopping.abort();
      await Promise.race([running, sleep(leaveMs + 1_000, undefined, { ref: false })]);
    },
  };
}
