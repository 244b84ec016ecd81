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
/** What happened, in order. */
let steps: string[];
beforeAll(async () => {
  world = await startWorld();
  await (await world.service()).stop();
  cache = await startCache(world.redis.url);
  const logger = createLogger('content-cache', 'silent');
  const metrics = createCacheMetrics(createMetrics('content-cache'));
  const jobs = createFailedJobStore(world.query);
  processBatch = createProcessBatch({
    clearing: {
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

/** Processes the messages as a batch whose last offset is one more than theirs: a transaction's mark, say. */
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
  const continuity = {
    verify: verify ?? (() => Promise.resolve()),
    moved: (_: number, offset: number) => void steps.push(`moved ${offset}`),
  };
  return processBatch(payload, continuity, signal ?? new AbortController().signal);
}

test('what failed is stored, the rest is cleared once, and then the offset moves', async () => {
  await process(messages(record(1), 'poison', record(2), record(1)));
  expect(steps.slice(0, 1)).toEqual(['store 1']);
  expect(steps.slice(1, 3).toSorted()).toEqual(['clear 1', 'clear 2']);
  expect(steps.slice(3)).toEqual(['resolve 4', 'commit 5', 'moved 5']);
});

test('a long batch is committed piece by piece, and its records are still cleared once', async () => {
  await process(messages(...Array.from({ length: 1_100 }, (_, index) => record(1 + (index % 3)))));
  expect(steps.filter((step) => step.startsWith('clear'))).toHaveLength(3);
  expect(steps.filter((step) => step.startsWith('commit'))).toEqual([
    'commit 500',
    'commit 1000',
    'commit 1101',
  ]);
});

test('a batch that is stale after the check is not committed', async () => {
  let stale = false;
  const verify = () => {
    stale = true;
    return Promise.resolve();
  };
  await process(messages(record(1)), { verify, isStale: () => stale });
  expect(steps).toEqual(['clear 1']);
});

test('nothing is committed after the batch was told to end', async () => {
  const ending = new AbortController();
  const verify = () => {
    ending.abort();
    return Promise.resolve();
  };
  await expect(process(messages(record(1)), { verify, signal: ending.signal })).rejects.toThrow('aborted');
  expect(steps).toEqual(['clear 1']);
});
