import type { EachBatchPayload, KafkaMessage } from 'kafkajs';
import {
  beginSpan,
  inSpan,
  observe,
  retryUntilAborted,
  settleAll,
  type Logger,
  type Span,
} from '@content-platform/chassis';
import type { CacheClearer } from '../cache/index.ts';
import type { FailedJobStore } from '../failed-job-store.ts';
import { type Invalidator, secondsSince, targetName } from '../invalidator.ts';
import type { CacheMetrics } from '../metrics.ts';
import type { OffsetGapGuard } from './offset-gap-guard.ts';
import { parseEvent, type Announcement, type Unprocessable } from './parse-event.ts';

export interface BatchDeps {
  clearer: CacheClearer;
  invalidator: Invalidator;
  jobs: FailedJobStore;
  metrics: CacheMetrics;
  logger: Logger;
}

/** Events that are cleared together and then committed: after a crash a long batch does not restart from its beginning. */
const sliceSize = 500;

type Place = { topic: string; partition: number };

interface Received {
  message: KafkaMessage;
  span: Span | undefined;
}

type ReceivedEvent = Received & Announcement;

export type ProcessBatch = ReturnType<typeof createProcessBatch>;

/** Begins the span of an event, in the sender's trace if the message has a `traceparent` header. */
function beginEvent({ topic, partition }: Place, message: KafkaMessage): Span | undefined {
  return beginSpan(`process ${topic}`, {
    kind: 'consumer',
    parent: message.headers,
    attributes: {
      'messaging.system': 'kafka',
      'messaging.destination.name': topic,
      'messaging.destination.partition.id': String(partition),
      'messaging.kafka.offset': Number(message.offset),
    },
  });
}

/**
 * Processes a batch: an unprocessable event becomes a failed job, every other event is cleared, and then the offset is
 * committed. Each record is cleared once, since every change was committed before any event of the batch was fetched.
 * Retries while a dependency is unavailable, until `signal` aborts; nothing is committed after that.
 */
export function createProcessBatch(deps: BatchDeps) {
  const { clearer, invalidator, jobs, metrics, logger } = deps;

  async function storeFailure(at: Place, message: KafkaMessage, failure: Unprocessable, signal: AbortSignal) {
    const { offset, key, value, timestamp } = message;
    const isNew = await retryUntilAborted(
      signal,
      () => jobs.add({ ...failure, ...at, offset, key, value, messageAt: timestamp }),
      (error) => logger.warn({ error, ...at, offset }, 'failed job not stored; retrying'),
    );
    if (!isNew) return;
    metrics.failedJobs.inc({ class: failure.class });
    const details = { ...at, offset, class: failure.class, reason: failure.error };
    logger.warn(details, 'an event became a failed job');
  }

  /** Clears each event's target; a retry clears only those that were refused. */
  async function clearAll({ topic, partition }: Place, events: ReceivedEvent[], signal: AbortSignal) {
    const waiting = new Set(events);
    async function clear(event: ReceivedEvent) {
      const { target, message, span } = event;
      const requestedBy = `${topic}/${partition}/${message.offset}`;
      await inSpan(span, () => invalidator.clear(clearer, target, { source: 'kafka', requestedBy }));
      waiting.delete(event);
    }
    await retryUntilAborted(
      signal,
      () => settleAll([...waiting].map(clear)),
      (error) => logger.warn({ error, waiting: waiting.size }, 'clear refused; the events wait for a retry'),
    );
  }

  async function processReceived(at: Place, received: Received[], done: Set<string>, signal: AbortSignal) {
    const events: ReceivedEvent[] = [];
    for (const { message, span } of received) {
      const parsed = parseEvent(message.value);
      if ('target' in parsed) {
        events.push({ message, span, ...parsed });
      } else {
        span?.fail({ name: parsed.class });
        await inSpan(span, () => storeFailure(at, message, parsed, signal));
      }
    }
    const toClear = events.filter(({ target }) => {
      const name = targetName(target);
      return !done.has(name) && done.add(name);
    });
    await clearAll(at, toClear, signal);
    for (const { occurredAt, message, span } of events) {
      const since = occurredAt ?? Number(message.timestamp);
      observe(metrics.delay, { source: 'kafka' }, secondsSince(since), span?.sentTraceId);
    }
  }

  async function processSlice(at: Place, slice: KafkaMessage[], done: Set<string>, signal: AbortSignal) {
    const received = slice.map((message) => ({ message, span: beginEvent(at, message) }));
    try {
      await processReceived(at, received, done, signal);
    } catch (error) {
      for (const { span } of received) span?.fail(error);
      throw error;
    } finally {
      for (const { span } of received) span?.end();
    }
  }

  return async (
    { batch, resolveOffset, commitOffsetsIfNecessary, isStale }: EachBatchPayload,
    gapGuard: Pick<OffsetGapGuard, 'verify' | 'onCommitted'>,
    signal: AbortSignal,
  ): Promise<void> => {
    const { topic, partition, messages } = batch;
    /** The names of the targets that were cleared. */
    const done = new Set<string>();
    for (let start = 0; start < messages.length; start += sliceSize) {
      const slice = messages.slice(start, start + sliceSize);
      await processSlice({ topic, partition }, slice, done, signal);
      await retryUntilAborted(
        signal,
        () => gapGuard.verify(partition),
        (error) => logger.warn({ error }, 'offsets not checked; retrying'),
      );
      // A loss was found and everything was cleared: the broker delivers again from its oldest event.
      if (isStale()) return;
      signal.throwIfAborted();
      const isLast = start + sliceSize >= messages.length;
      const last = isLast ? batch.lastOffset() : slice.at(-1)!.offset;
      const next = Number(last) + 1;
      resolveOffset(last);
      await commitOffsetsIfNecessary({
        topics: [{ topic, partitions: [{ partition, offset: String(next) }] }],
      });
      gapGuard.onCommitted(partition, next);
    }
  };
}
