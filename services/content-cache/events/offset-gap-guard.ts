import type { Consumer } from 'kafkajs';
import { retryUntilAborted, type Logger } from '@content-platform/chassis';
import type { Broker, PartitionOffsets } from './broker.ts';

export interface LostPartition extends PartitionOffsets {
  /** The offset that this process committed last; negative: none. */
  position: number;
}

/** Clears the whole cache, because events may have been lost. `signal` aborts when the group's generation ends. */
export type OnLost = (lost: LostPartition[], topicIsNew: boolean, signal: AbortSignal) => Promise<void>;

export interface Topic {
  name: string;
  /** The topic was missing, and no check has succeeded since. All of its events will be consumed. */
  isNew: boolean;
}

interface OffsetGapGuardOptions {
  consumer: Pick<Consumer, 'seek' | 'commitOffsets'>;
  broker: Pick<Broker, 'committed' | 'offsets'>;
  topic: Topic;
  onLost: OnLost;
  logger: Logger;
  /** Aborts with the consumer. */
  signal: AbortSignal;
}

/** No offset is committed, or it is below the oldest event (retention) or above the newest (a recreated topic). */
function isLost({ committed, low, high }: PartitionOffsets): boolean {
  return committed < 0 || committed < low || committed > high;
}

export type OffsetGapGuard = ReturnType<typeof createOffsetGapGuard>;

/** Runs `onLost` when the group's offset is missing or out of range: kafkajs silently continues with the oldest event. */
export function createOffsetGapGuard(options: OffsetGapGuardOptions) {
  const { consumer, broker, topic, onLost, logger, signal } = options;
  let generation = new AbortController();
  /** The partitions of this member, with the last known committed offset of each. */
  let positions = new Map<number, number>();
  let checked: Promise<void> = Promise.resolve();
  let pendingChecks = 0;

  async function check(alive: AbortSignal): Promise<void> {
    const assigned = positions;
    const found = (await broker.offsets()).filter(({ partition }) => assigned.has(partition));
    const lost = found.filter(isLost).map((at) => ({ ...at, position: assigned.get(at.partition)! }));
    if (lost.length > 0) {
      await onLost(lost, topic.isNew, alive);
      alive.throwIfAborted();
      const starts = lost.map(({ partition, low }) => ({ topic: topic.name, partition, offset: `${low}` }));
      // seek() discards fetched batches; the commit gives the group an offset to continue from. If the partition was
      // always empty, nothing was fetched, and kafkajs might keep the seek until it gets the partition again.
      starts.forEach((start, index) => {
        const { high, position } = lost[index]!;
        if (high > 0 || position >= 0) consumer.seek(start);
      });
      await consumer.commitOffsets(starts);
    }
    alive.throwIfAborted();
    topic.isNew = false;
    positions = new Map(found.map((at) => [at.partition, isLost(at) ? at.low : at.committed]));
  }

  /** Queues a check, and repeats it until it succeeds or this generation of the group ends. */
  function recheck(): Promise<void> {
    const alive = AbortSignal.any([signal, generation.signal]);
    pendingChecks += 1;
    checked = checked
      .catch(() => undefined)
      .then(() =>
        retryUntilAborted(
          alive,
          () => check(alive),
          (error) => logger.warn({ error }, 'offsets not checked; retrying'),
        ),
      )
      .finally(() => (pendingChecks -= 1));
    checked.catch(() => undefined);
    return checked;
  }

  /** Whether the group's committed offset is what this process knows: a recreated topic has lost it. */
  async function isKnown(partition: number): Promise<boolean> {
    return (await broker.committed()).get(partition) === positions.get(partition);
  }

  return {
    /** Starts a new generation of the group: all known offsets are obsolete. Resolves as ready() does. */
    joined(partitions: readonly number[]): Promise<void> {
      generation.abort();
      generation = new AbortController();
      checked = Promise.resolve();
      positions = new Map(partitions.map((partition) => [partition, positions.get(partition) ?? -1]));
      return recheck();
    },

    /** Resolves when every queued check is done, and everything was cleared after each loss. */
    ready: (): Promise<void> => checked,

    /** Checks all offsets if the committed one differs from ours, as in a recreated topic. Call it before each commit. */
    async verify(partition: number): Promise<void> {
      if (!(await isKnown(partition))) await recheck();
    },

    /** Commits `next` for a batch of aborted transactions: kafkajs delivers no batch, so no other code commits it. */
    async skipAborted(partition: number, next: number): Promise<void> {
      const { signal: ended } = generation;
      await checked;
      const isOurs = await isKnown(partition);
      ended.throwIfAborted();
      if (!isOurs) return recheck();
      if ((positions.get(partition) ?? next) >= next) return;
      await consumer.commitOffsets([{ topic: topic.name, partition, offset: String(next) }]);
      positions.set(partition, next);
    },

    onCommitted(partition: number, offset: number): void {
      positions.set(partition, offset);
    },

    /** Checks measured offsets for a loss: this detects a loss in a partition without new events. */
    checkOffsets(offsets: readonly PartitionOffsets[]): void {
      const lost = offsets.some((at) => positions.has(at.partition) && isLost(at));
      if (lost && pendingChecks === 0) void recheck();
    },
  };
}
