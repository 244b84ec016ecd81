import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createLogger } from '@content-platform/chassis';
import { createOffsetGapGuard, type LostPartition } from './offset-gap-guard.ts';

type Offsets = { committed: number; low: number; high: number };

/** Offsets of the broker by partition. */
let partitions: Offsets[];
let steps: string[];
let losses: { lost: LostPartition[]; topicIsNew: boolean }[];
let onLost: () => Promise<void>;
let ending: AbortController;
beforeEach(() => {
  [partitions, steps, losses] = [[], [], []];
  onLost = () => Promise.resolve();
  ending = new AbortController();
});
afterEach(() => ending.abort());

const offsets = () => Promise.resolve(partitions.map((at, partition) => ({ partition, ...at })));

async function guardOf(all: Offsets[], isNew = false) {
  partitions = all;
  const guard = createOffsetGapGuard({
    consumer: {
      seek: ({ partition, offset }) => void steps.push(`seek ${partition}@${offset}`),
      commitOffsets: async (commits) => {
        for (const { partition, offset } of commits) {
          partitions[partition]!.committed = Number(offset);
          steps.push(`commit ${partition}@${offset}`);
        }
      },
    },
    broker: {
      offsets,
      committed: async () => new Map(partitions.map(({ committed }, partition) => [partition, committed])),
    },
    topic: { name: 'events', isNew },
    async onLost(lost, topicIsNew) {
      await onLost();
      losses.push({ lost, topicIsNew });
      steps.push('cleared');
    },
    logger: createLogger('content-cache', 'silent'),
    signal: ending.signal,
  });
  await guard.joined(all.map((_, partition) => partition));
  return guard;
}

/** Offsets of a topic that was deleted and recreated. */
const recreated = (high: number): Offsets => ({ committed: -1, low: 0, high });

test.each<[string, Offsets]>([
  ['the committed offset is the oldest event', { committed: 3, low: 3, high: 5 }],
  ['every event is committed', { committed: 5, low: 3, high: 5 }],
])('finds no loss when %s', async (_, at) => {
  await guardOf([at]);
  expect(steps).toEqual([]);
});

test.each<[string, Offsets]>([
  ['no offset is committed', recreated(2)],
  ['the broker has deleted events', { committed: 1, low: 3, high: 5 }],
  ['the broker has deleted all events', { committed: 1, low: 5, high: 5 }],
  ['the committed offset is above the newest event', { committed: 9, low: 0, high: 5 }],
])('clears, then continues with the oldest event, when %s', async (_, at) => {
  const { low } = at;
  await guardOf([at]);
  expect(steps).toEqual(['cleared', `seek 0@${low}`, `commit 0@${low}`]);
});

test('only the first check reports the topic as new, and seeks nothing in an empty partition', async () => {
  const guard = await guardOf([recreated(0)], true);
  partitions = [recreated(0)];
  await guard.verify(0);
  expect([...losses.map((loss) => loss.topicIsNew), steps.indexOf('seek 0@0')]).toEqual([true, false, 3]);
});

test('retries until everything is cleared after a loss, and commits nothing before', async () => {
  let failures = 2;
  onLost = () => (failures-- > 0 ? Promise.reject(new Error('Redis is unavailable')) : Promise.resolve());
  await guardOf([recreated(2)]);
  expect(steps).toEqual(['cleared', 'seek 0@0', 'commit 0@0']);
});

test.each([2, 4, 6])('notices before a commit that the topic was recreated with %d events', async (high) => {
  const guard = await guardOf([{ committed: 3, low: 0, high: 4 }]);
  partitions = [recreated(high)];
  await guard.verify(0);
  expect(losses).toMatchObject([{ lost: [{ partition: 0, position: 3 }] }]);
  expect(steps).toEqual(['cleared', 'seek 0@0', 'commit 0@0']);
});

test('checks nothing before a commit while the offset is its own', async () => {
  const guard = await guardOf([{ committed: 3, low: 0, high: 4 }]);
  partitions = [{ committed: 4, low: 0, high: 3 }]; // A check would find a loss.
  guard.onCommitted(0, 4);
  await guard.verify(0);
  expect(steps).toEqual([]);
});

test('notices a loss in a partition without new events, but only in its own partitions', async () => {
  const fine = { committed: 1, low: 0, high: 1 };
  const guard = await guardOf([fine, { ...fine }]);
  await guard.joined([0]);
  partitions[1] = { committed: 1, low: 2, high: 2 };
  guard.checkOffsets(await offsets());
  await guard.ready();
  expect(losses).toEqual([]);
  partitions[0] = { committed: 1, low: 2, high: 2 };
  guard.checkOffsets(await offsets());
  await guard.ready();
  expect(losses).toMatchObject([{ lost: [{ partition: 0 }] }]);
});

test('commits the end of a batch of aborted transactions', async () => {
  const guard = await guardOf([{ committed: 0, low: 0, high: 3 }]);
  await guard.skipAborted(0, 3);
  expect(partitions[0]).toMatchObject({ committed: 3 });
  await guard.verify(0);
  expect(losses).toEqual([]);
});

test('commits no aborted batch of a topic that was recreated', async () => {
  const guard = await guardOf([{ committed: 0, low: 0, high: 3 }]);
  partitions = [recreated(5)];
  await guard.skipAborted(0, 3);
  expect(losses).toHaveLength(1);
  expect(partitions[0]).toMatchObject({ committed: 0 });
});

test('commits no aborted batch of a partition that another member has now', async () => {
  const guard = await guardOf([{ committed: 0, low: 0, high: 3 }]);
  const skipping = guard.skipAborted(0, 3);
  await guard.joined([]);
  await expect(skipping).rejects.toThrow('aborted');
  expect(partitions[0]).toMatchObject({ committed: 0 });
});
