import { z } from 'zod';
import { id, model, modelPattern, multiLineText } from './schemas.ts';

/**
 * Fields of both events, for logs and for measuring the delay. They do not change which records are cleared, so that a
 * malformed one counts as absent.
 */
const about = {
  event_id: multiLineText(1, 200)
    .optional()
    .catch(undefined)
    .meta({ description: "The sender's own id of the event." }),
  change: z.enum(['created', 'updated', 'deleted']).optional().catch(undefined),
  occurred_at: z.iso
    .datetime({ offset: true })
    .optional()
    .catch(undefined)
    .meta({ description: 'When the change was committed.' }),
};

/**
 * A record changed. Unknown fields are ignored, because refusing the event would leave an old record in the cache.
 */
export const recordChanged = z.object({ model, id, ...about });

/** Every record of a model may have changed. */
export const modelChanged = z.object({
  pattern: modelPattern,
  ...about,
});

export const invalidationEvent = z.union([recordChanged, modelChanged]);
export type InvalidationEvent = z.infer<typeof invalidationEvent>;

/** The only topic, for the AsyncAPI document and for creating the topic. */
export const cacheInvalidation = {
  topic: 'cache-invalidation',
  partitions: 8,
  retentionMs: 7 * 24 * 60 * 60 * 1000,
  /** Messages about one record share a partition: the key is `<model>:<id>`, or the pattern. */
  key: '<model>:<id>, or the pattern',
  maxBytes: 16_384,
  group: 'content-cache',
  summary: 'The content server announces which record changed, after it has committed the change.',
} as const;
