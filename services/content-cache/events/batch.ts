import type { EachBatchPayload, KafkaMessage } from 'kafkajs';
import { inSpan, observe, type Logger, type Span } from '@content-platform/chassis';
import type { Clearing } from '../cache/index.ts';
import type { FailedJobStore } from '../failed-job-store.ts';
import { secondsSince, type Invalidator } from '../invalidator.ts';
import type { CacheMetrics } from '../metrics.ts';
import { targetName, type Target } from '../target.ts';
import type { Continuity } from './continuity.ts';
import { beginEvent } from './event-span.ts';
import { parseEvent, type Announcement, type Unprocessable } from './parse-event.ts';
import { persist } from './persist.ts';

export interface BatchDeps {
  clearing: Clearing;
  invalidator: Invalidator;
  jobs: FailedJobStore;
  metrics: CacheMetrics;
  logger: Logger;
}

/** So many events are cleared side by side and then committed: a long batch does not start again from its beginning. */
const sliceSize = 500;

type Place = { topic: string; partition: number };

interface Received {
  message: KafkaMessage;
  span: Span | undefined;
}

/** What an event wants cleared, and the event's place, for the log. */
interface Wanted {
  target: Target;
  place: string;
  span: Span | undefined;
}

export type ProcessBatch = (
  payload: EachBatchPayload,
  continuity: Pick<Continuity, 'verify' | 'moved'>,
  signal: AbortSignal,
) => Promise<void>;

/**
 * Processes a batch: what can never be processed becomes a failed job, everything else is cleared, and only then the
 * offset moves. A record is cleared once, for the change was committed before any of its events was fetched. Whatever
 * is away is tried again, for as long as it takes; `signal` ends that, and nothing is committed after it.
 */
export function createProcessBatch(deps: BatchDeps): ProcessBatch {
  const { clearing, invalidator, jobs, metrics, logger } = deps;

  async function storeFailure(at: Place, message: KafkaMessage, failure: Unprocessable, signal: AbortSignal) {
    const { offset, key, value, timestamp } = message;
    const job = { ...failure, ...at, offset, key, value, messageAt: timestamp };
    const isNew = await persist(
      signal,
      () => jobs.add(job),
      (error) => logger.warn({ error, ...at, offset }, 'a failed job cannot be stored yet'),
    );
    if (!isNew) return;
    metrics.failedJobs.inc({ class: failure.class });
    logger.warn(
      { ...at, offset, class: failure.class, reason: failure.error },
      'an event became a failed job',
    );
  }

  /** `wanted`: what is to be cleared, by its name. */
  async function clearAll(wanted: Map<string, Wanted>, signal: AbortSignal) {
    await persist(
      signal,
      async () => {
        const outcomes = await Promise.allSettled(
          [...wanted].map(async ([name, { target, place, span }]) => {
            const requester = { source: 'kafka', requestedBy: place } as const;
            await inSpan(span, () => invalidator.clear(clearing, target, requester));
            wanted.delete(name);
          }),
        );
        const refused = outcomes.find((outcome) => outcome.status === 'rejected');
        if (refused) throw refused.reason;
      },
      (error) => logger.warn({ error, waiting: wanted.size }, 'events wait for the cache'),
    );
  }

  async function processMessages(at: Place, slice: Received[], done: Set<string>, signal: AbortSignal) {
    const events: (Received & { event: Announcement })[] = [];
    for (const { message, span } of slice) {
      const parsed = parseEvent(message.value);
      if (parsed.ok) events.push({ message, span, event: parsed.event });
      else {
        span?.fail({ name: parsed.failure.class });
        await inSpan(span, () => storeFailure(at, message, parsed.failure, signal));
      }
    }
    const wanted = new Map<string, Wanted>();
    for (const { event, message, span } of events) {
      const name = targetName(event.target);
      const place = `${at.topic}/${at.partition}/${message.offset}`;
      if (!done.has(name)) wanted.set(name, { target: event.target, place, span });
      done.add(name);
    }
    await clearAll(wanted, signal);
    for (const { event, message, span } of events) {
      const since = event.occurredAt ?? Number(message.timestamp);
      observe(metrics.delay, { source: 'kafka' }, secondsSince(since), span?.sentTraceId);
    }
  }

  /** Each event's span ends when the slice is done with. */
  async function processSlice(at: Place, slice: KafkaMessage[], done: Set<string>, signal: AbortSignal) {
    const received = slice.map((message) => ({
      message,
      span: beginEvent(at.topic, at.partition, message),
    }));
    try {
      await processMessages(at, received, done, signal);
    } catch (error) {
      for (const { span } of received) span?.fail(error);
      throw error;
    } finally {
      for (const { span } of received) span?.end();
    }
  }

  return async ({ batch, resolveOffset, commitOffsetsIfNecessary, isStale }, continuity, signal) => {
    const { topic, partition, messages } = batch;
    const done = new Set<string>();
    for (let start = 0; start < messages.length; start += sliceSize) {
      const slice = messages.slice(start, start + sliceSize);
      await processSlice({ topic, partition }, slice, done, signal);
      await persist(
        signal,
        () => continuity.verify(partition),
        (error) => logger.warn({ error }, 'the offsets cannot be checked yet'),
      );
      // Something was lost meanwhile, and made up for: this batch is delivered again, from where the broker begins.
      if (isStale()) return;
      signal.throwIfAborted();
      const isLast = start + sliceSize >= messages.length;
      const last = isLast ? batch.lastOffset() : slice.at(-1)!.offset;
      const next = Number(last) + 1;
      resolveOffset(last);
      await commitOffsetsIfNecessary({
        topics: [{ topic, partitions: [{ partition, offset: String(next) }] }],
      });
      continuity.moved(partition, next);
    }
  };
}
