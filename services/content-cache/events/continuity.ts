import type { Consumer } from 'kafkajs';
import type { Logger } from '@content-platform/chassis';
import type { Broker, PartitionOffsets } from './broker.ts';
import { persist } from './persist.ts';

export interface LostPartition extends PartitionOffsets {
  /** Where this process was in the partition; negative: nowhere. */
  position: number;
}

/** Makes up for events that may have been lost; resolves when that is done. */
export type OnLost = (lost: LostPartition[], topicIsNew: boolean) => Promise<void>;

export interface ContinuityOptions {
  consumer: Pick<Consumer, 'seek' | 'commitOffsets'>;
  broker: Broker;
  topic: string;
  /** The topic has just been made: what is in it came after that, and is consumed. */
  isNew: boolean;
  /** The offsets have been checked, and what was missing has been made up for. */
  onChecked: () => void;
  onLost: OnLost;
  logger: Logger;
  /** Ends with the consumer. */
  signal: AbortSignal;
}

/** Nothing is committed, or what is committed is not there any more (retention) or not yet (a topic made anew). */
function isLost({ committed, low, high }: PartitionOffsets): boolean {
  return committed < 0 || committed < low || committed > high;
}

export type Continuity = ReturnType<typeof createContinuity>;

/**
 * Watches that each event follows the one before. Where the group's offset is missing or out of the broker's range,
 * kafkajs goes on silently with the oldest event there is; here `onLost` comes first.
 */
export function createContinuity(options: ContinuityOptions) {
  const { consumer, broker, topic, onChecked, onLost, logger, signal } = options;
  let generation = new AbortController();
  /** The partitions of this member, and what is committed for them as far as we know. */
  let positions = new Map<number, number>();
  let checked: Promise<void> = Promise.resolve();
  let checking = 0;
  /** How often something was lost: what was fetched before is of no use since then. */
  let losses = 0;
  /** What is being passed over. */
  let passing: Promise<unknown> = Promise.resolve();
  let { isNew } = options;

  async function check(assigned: readonly number[], alive: AbortSignal): Promise<void> {
    const found = (await broker.offsets()).filter(({ partition }) => assigned.includes(partition));
    const lost = found.filter(isLost).map((at) => ({ ...at, position: positions.get(at.partition) ?? -1 }));
    if (lost.length > 0) {
      losses += 1;
      await onLost(lost, isNew);
      alive.throwIfAborted();
      const starts = lost.map(({ partition, low }) => ({ topic, partition, offset: String(low) }));
      // What was fetched before is thrown away, and the group has a place to go on from.
      for (const start of starts) consumer.seek(start);
      await consumer.commitOffsets(starts);
    }
    alive.throwIfAborted();
    isNew = false;
    onChecked();
    positions = new Map(found.map((at) => [at.partition, isLost(at) ? at.low : at.committed]));
  }

  function recheck(assigned: readonly number[]): Promise<void> {
    const alive = AbortSignal.any([signal, generation.signal]);
    checking += 1;
    checked = checked
      .catch(() => undefined)
      .then(() =>
        persist(
          alive,
          () => check(assigned, alive),
          (error) => logger.warn({ error }, 'the offsets cannot be checked yet'),
        ),
      )
      .finally(() => (checking -= 1));
    checked.catch(() => undefined);
    return checked;
  }

  async function verify(partition: number): Promise<void> {
    const committed = (await broker.committed()).get(partition);
    if (committed !== positions.get(partition)) await recheck([...positions.keys()]);
  }

  /** @param before `losses` when the events were fetched: after another one they are not those that are there now */
  async function commitPassed(partition: number, next: number, before: number, alive: AbortSignal) {
    await checked;
    await verify(partition);
    alive.throwIfAborted();
    const position = positions.get(partition);
    if (losses !== before || position === undefined || position >= next) return;
    await consumer.commitOffsets([{ topic, partition, offset: String(next) }]);
    positions.set(partition, next);
  }

  return {
    /** The group was joined, or joined again: nothing that was known of offsets holds any more. Resolves as ready(). */
    joined(partitions: readonly number[]): Promise<void> {
      generation.abort();
      generation = new AbortController();
      checked = Promise.resolve();
      positions = new Map(partitions.map((partition) => [partition, positions.get(partition) ?? -1]));
      return recheck(partitions);
    },

    /** Resolves when nothing is known to be missing, or has been made up for, and nothing is being passed over. */
    async ready(): Promise<void> {
      await passing;
      await checked;
    },

    /**
     * To be called before a commit: a topic that was deleted and made anew takes the group's offsets along. When they
     * are not what we left, everything is checked again first.
     */
    verify,

    /** The events before `next` were taken back by who sent them: they are committed here, as nobody else does it. */
    passOver(partition: number, next: number): void {
      const alive = AbortSignal.any([signal, generation.signal]);
      const before = losses;
      passing = passing
        .then(() =>
          persist(
            alive,
            () => commitPassed(partition, next, before, alive),
            (error) => logger.warn({ error, partition }, 'what was taken back cannot be committed yet'),
          ),
        )
        // Whoever has the partition next gets it again.
        .catch(() => undefined);
    },

    /** We have committed `offset`. */
    moved(partition: number, offset: number): void {
      positions.set(partition, offset);
    },

    /** What somebody has just measured: a loss is noticed in a partition in which nothing happens, too. */
    look(offsets: readonly PartitionOffsets[]): void {
      const lost = offsets.some((at) => positions.has(at.partition) && isLost(at));
      if (lost && checking === 0) void recheck([...positions.keys()]);
    },
  };
}
