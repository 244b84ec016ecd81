import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { EachBatchPayload, KafkaMessage, OffsetsByTopicPartition } from 'kafkajs';
import { createLogger, createMetrics } from '@content-platform/chassis';
import type { ContentCache } from '../cache/index.ts';
import { startCache } from '../cache/testing/caches.ts';
import { createFailedJobStore } from '../failed-job-store.ts';
import { createInvalidationLog } from '../invalidation-log.ts';
import { createInvalidator } from '../invalidator.ts';
import { createCacheMetrics } from '../metrics.ts';
import { startWorld, type World } from '../testing/world.ts';
import { createProcessBatch, type ProcessBatch } from './batch.ts';

let world: World;
let cache: ContentCache;
let processBatch: ProcessBatch;
/** All steps in order. */
let steps: string[];
beforeAll(async () => {
  world = await startWorld();
  await (await world.service()).stop();
  cache = await startCache(world.redis.url);
  const logger = createLogger('content-cache', 'silent');
  const metrics = createCacheMetrics(createMetrics('content-cache'));
  const jobs = createFailedJobStore(world.query);
  processBatch = createProcessBatch({
    clearer: {
      ...cache,
      async clearModel(model, id) {
        const keys = await cache.clearModel(model, id);
        steps.push(`clear ${id}`);
        return keys;
      },
    },
    invalidator: createInvalidator(createInvalidationLog(world.query, logger), metrics),
    jobs: {
      ...jobs,
      async add(job) {
        const isNew = await jobs.add(job);
        steps.push(`store ${job.offset}`);
        return isNew;
      },
    },
    metrics,
    logger,
  });
});
beforeEach(() => void (steps = []));
afterAll(async () => {
  await cache.close();
  await world.close();
});

const timestamp = String(Date.now());
const messages = (...values: string[]) =>
  values.map(
    (value, offset) =>
      ({ key: null, value: Buffer.from(value), timestamp, offset: String(offset) }) as KafkaMessage,
  );
const record = (id: number) => `{"model":"webform","id":${id}}`;

interface Around {
  verify?: () => Promise<void>;
  isStale?: () => boolean;
  signal?: AbortSignal;
}

/** Processes the messages as a batch with one offset more, as after the mark of a transaction. */
function process(batch: KafkaMessage[], { verify, isStale, signal }: Around = {}): Promise<void> {
  const payload = {
    batch: { topic: 'events', partition: 0, messages: batch, lastOffset: () => String(batch.length) },
    resolveOffset: (offset: string) => steps.push(`resolve ${offset}`),
    commitOffsetsIfNecessary: (offsets?: OffsetsByTopicPartition) => {
      steps.push(`commit ${offsets?.topics[0]!.partitions[0]!.offset}`);
      return Promise.resolve();
    },
    isStale: isStale ?? (() => false),
  } as unknown as EachBatchPayload;
  const offsets = {
    verify: verify ?? (() => Promise.resolve()),
    onCommitted: (_: number, offset: number) => void steps.push(`noted ${offset}`),
  };
  return processBatch(payload, offsets, signal ?? new AbortController().signal);
}

test('stores failures, clears each record once, and then commits', async () => {
  await process(messages(record(1), 'poison', record(2), record(1)));
  expect(steps.slice(0, 1)).toEqual(['store 1']);
  expect(steps.slice(1, 3).toSorted()).toEqual(['clear 1', 'clear 2']);
  expect(steps.slice(3)).toEqual(['resolve 4', 'commit 5', 'noted 5']);
});

test('commits a long batch in slices, and still clears each record once', async () => {
  await process(messages(...Array.from({ length: 1_100 }, (_, index) => record(1 + (index % 3)))));
  expect(steps.filter((step) => step.startsWith('clear'))).toHaveLength(3);
  expect(steps.filter((step) => step.startsWith('commit'))).toEqual([
    'commit 500',
    'commit 1000',
    'commit 1101',
  ]);
});

test('does not commit a batch that is stale after the check', async () => {
  let stale = false;
  const verify = () => {
    stale = true;
    return Promise.resolve();
  };
  await process(messages(record(1)), { verify, isStale: () => stale });
  expect(steps).toEqual(['clear 1']);
});

test('commits nothing after the signal aborts', async () => {
  const ending = new AbortController();
  const verify = () => {
    ending.abort();
    return Promise.resolve();
  };
  await expect(process(messages(record(1)), { verify, signal: ending.signal })).rejects.toThrow('aborted');
  expect(steps).toEqual(['clear 1']);
});
