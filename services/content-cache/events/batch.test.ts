import { beforeEach, expect, test } from '@jest/globals';
import type { EachBatchPayload, OffsetsByTopicPartition } from 'kafkajs';
import { createLogger, createMetrics } from '@content-platform/chassis';
import type { CacheClearer } from '../cache/index.ts';
import type { FailedJobStore, NewFailedJob } from '../failed-job-store.ts';
import type { InvalidationLog } from '../invalidation-log.ts';
import { createInvalidator } from '../invalidator.ts';
import { createCacheMetrics } from '../metrics.ts';
import { createProcessBatch } from './batch.ts';
let steps: string[];
beforeEach(() => void (steps = []));

const metrics = createCacheMetrics(createMetrics('content-cache'));
const processBatch = createProcessBatch({
  clearer: { clearRecord: async (_, id) => steps.push(`clear ${id}`) } as CacheClearer,
  jobs: { add: async ({ offset }: NewFailedJob) => steps.push(`store ${offset}`) > 0 } as FailedJobStore,
  invalidator: createInvalidator({ add: () => {} } as unknown as InvalidationLog, metrics),
  metrics,
  logger: createLogger('content-cache', 'silent'),
});

const record = (id: number) => `{"model":"webform","id":${id}}`;

const usual = { verify: async () => {}, isStale: () => false, signal: new AbortController().signal };

/** Processes the values as a batch with one offset more, as after the mark of a transaction. */
function process(values: string[], options: Partial<typeof usual> = {}): Promise<void> {
  const { verify, isStale, signal } = { ...usual, ...options };
  const messages = values.map((value, offset) => ({
    key: null,
    value: Buffer.from(value),
    timestamp: String(Date.now()),
    offset: String(offset),
  }));
  const payload = {
    batch: { topic: 'events', partition: 0, messages, lastOffset: () => String(values.length) },
    resolveOffset: (offset: string) => steps.push(`resolve ${offset}`),
    commitOffsetsIfNecessary: async (offsets: OffsetsByTopicPartition) =>
      steps.push(`commit ${offsets.topics[0]!.partitions[0]!.offset}`),
    isStale,
  } as unknown as EachBatchPayload;
  const onCommitted = (_: number, offset: number) => void steps.push(`noted ${offset}`);
  return processBatch(payload, { verify, onCommitted }, signal);
}

test('stores failures, clears each record once, and then commits', async () => {
  await process([record(1), 'poison', record(2), record(1)]);
  expect(steps.slice(0, 1)).toEqual(['store 1']);
  expect(steps.slice(1, 3).toSorted()).toEqual(['clear 1', 'clear 2']);
  expect(steps.slice(3)).toEqual(['resolve 4', 'commit 5', 'noted 5']);
});

test('commits a long batch in slices, and still clears each record once', async () => {
  await process(Array.from({ length: 1_100 }, (_, index) => record(1 + (index % 3))));
  expect(steps.filter((step) => step.startsWith('clear'))).toHaveLength(3);
  expect(steps.filter((step) => step.startsWith('commit'))).toEqual([
    'commit 500',
    'commit 1000',
    'commit 1101',
  ]);
});

test('does not commit a batch that is stale after the check', async () => {
  let stale = false;
  const verify = async () => void (stale = true);
  await process([record(1)], { verify, isStale: () => stale });
  expect(steps).toEqual(['clear 1']);
});

test('commits nothing after the signal aborts', async () => {
  const ending = new AbortController();
  const verify = async () => ending.abort();
  await expect(process([record(1)], { verify, signal: ending.signal })).rejects.toThrow('aborted');
  expect(steps).toEqual(['clear 1']);
});
