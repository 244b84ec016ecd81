import { repeat, type Logger } from '@content-platform/chassis';
import type { CacheMetrics } from '../metrics.ts';
import type { Broker, PartitionOffsets } from './broker.ts';

/** Returns the number of uncommitted events. A group without a commit starts with the oldest event. */
function queueLength(offsets: readonly PartitionOffsets[]): number {
  return offsets.reduce(
    (sum, { committed, low, high }) => sum + Math.max(0, high - Math.max(committed, low)),
    0,
  );
}

const intervalMs = 2_000;
/** The pause after a failure: the topic may be new, or the coordinator may be loading. */
const retryMs = 500;

interface QueueOptions {
  broker: Pick<Broker, 'offsets'>;
  metrics: CacheMetrics;
  onOffsets: (offsets: PartitionOffsets[]) => void;
  logger: Logger;
}

/** Measures the queue by the broker's offsets, which also show the events of a dead consumer. */
export function watchQueue({ broker, metrics, onOffsets, logger }: QueueOptions) {
  let isMeasured = false;
  let measured: PartitionOffsets[] = [];

  async function measure(): Promise<void> {
    try {
      measured = await broker.offsets();
      metrics.queueMeasured.setToCurrentTime();
      isMeasured = true;
      onOffsets(measured);
    } catch (error) {
      isMeasured = false;
      throw error;
    }
  }

  // Alerts detect a Kafka that was never reachable by the age of this timestamp.
  metrics.queueMeasured.setToCurrentTime();

  return {
    /** The length at the last successful measurement; 0 before the first. */
    lastLength: () => queueLength(measured),
    /**
     * Asks Kafka how many events of the last measurement are uncommitted. Later events do not count: on a busy topic some
     * always wait. Rejects as Kafka does, and at once if the last measurement failed.
     */
    async countRemaining(): Promise<number> {
      if (!isMeasured) throw new Error('Kafka does not respond');
      const highs = new Map(measured.map(({ partition, high }) => [partition, high]));
      const now = await broker.offsets();
      return queueLength(now.map((at) => ({ ...at, high: highs.get(at.partition) ?? at.high })));
    },
    isMeasured: () => isMeasured,
    stop: repeat(measure, {
      everyMs: () => (isMeasured ? intervalMs : retryMs),
      logger,
      failure: 'invalidation queue not measured; its metrics keep their last values',
    }),
  };
}
