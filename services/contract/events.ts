import { z } from 'zod';
import { id, model, modelPattern, multiLineText } from './schemas.ts';

/** Optional fields, for logs and the delay metric. A malformed value is ignored, because it does not change the clear. */
const about = {
  event_id: multiLineText(1, 200).optional().catch(undefined).describe('ID of the event at the sender.'),
  change: z.enum(['created', 'updated', 'deleted']).optional().catch(undefined),
  occurred_at: z.iso
    .datetime({ offset: true })
    .optional()
    .catch(undefined)
    .describe('Time when the sender committed the change.'),
};

/** One record changed. Unknown fields are ignored, because a refused event would leave an old version in the cache. */
export const recordChanged = z.object({ model, id, ...about });

/** Every record of a model may have changed. */
export const modelChanged = z.object({ pattern: modelPattern, ...about });

export const invalidationEvent = z.union([recordChanged, modelChanged]);
export type InvalidationEvent = z.infer<typeof invalidationEvent>;

/** The Kafka topic. The AsyncAPI document and the code that creates the topic read it. */
export const cacheInvalidation = {
  topic: 'cache-invalidation',
  partitions: 8,
  retentionMs: 7 * 24 * 60 * 60 * 1000,
  /** Message key. It puts all messages about one record into one partition. */
  key: '<model>:<id>, or the pattern',
  maxBytes: 16_384,
  group: 'content-cache',
  summary: 'A content server publishes each changed record after it has committed the change.',
} as const;
