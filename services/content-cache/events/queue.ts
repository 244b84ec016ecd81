import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@content-platform/chassis';
import type { CacheMetrics } from '../metrics.ts';
import type { Broker, PartitionOffsets } from './broker.ts';

/** Events that the group has not committed yet. Without a commit it begins with the oldest there is. */
export function queueLength(offsets: readonly PartitionOffsets[]): number {
  return offsets.reduce(
    (sum, { committed, low, high }) => sum + Math.max(0, high - Math.max(committed, low)),
    0,
  );
}

/** After a failure: a topic that is being made, a coordinator that is loading. */
const retryMs = 500;

export interface QueueOptions {
  broker: Broker;
  metrics: CacheMetrics;
  onOffsets: (offsets: PartitionOffsets[]) => void;
  logger: Logger;
  everyMs?: number;
}

/** Measures the queue by the broker's offsets: a consumer that is dead, here or elsewhere, does not hide it. */
export function createQueue({ broker, metrics, onOffsets, logger, everyMs = 2_000 }: QueueOptions) {
  const stopping = new AbortController();
  let measured: boolean | undefined;
  let next = Promise.withResolvers<number | undefined>();

  async function measure(): Promise<void> {
    const { resolve } = next;
    next = Promise.withResolvers();
    try {
      const offsets = await broker.offsets();
      const length = queueLength(offsets);
      resolve(length);
      metrics.queueLength.set(length);
      metrics.queueMeasured.setToCurrentTime();
      measured = true;
      onOffsets(offsets);
    } catch (error) {
      resolve(undefined);
      if (measured !== false) logger.warn({ error }, 'the invalidation queue cannot be measured');
      measured = false;
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await measure();
      await sleep(measured ? everyMs : retryMs, undefined, { signal: stopping.signal }).catch(
        () => undefined,
      );
    }
  }

  return {
    start(): void {
      // A Kafka that was never there is noticed as one is that goes away: by how old this is.
      metrics.queueMeasured.setToCurrentTime();
      void run();
    },
    /** The length by the next measurement, which begins after this call; undefined where Kafka does not answer it. */
    next: async (): Promise<number | undefined> => (stopping.signal.aborted ? undefined : next.promise),
    /** Whether the last attempt succeeded. */
    isMeasured: () => measured === true,
    stop(): void {
      stopping.abort();
      next.resolve(undefined);
    },
  };
}
