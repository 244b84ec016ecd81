import { z } from 'zod';
import { endpointsWith, jsonBody, jsonBodyOf } from './endpoint.ts';
import { eitherOf, id, idSegment, model, modelPattern, page, pageQuery, since, time } from './schemas.ts';

const cleared = z.strictObject({
  success: z.literal(true),
  keys_deleted: z.int().describe('Number of deleted keys: one per cached view and one per unmanaged key.'),
});

const define = endpointsWith({
  service: 'content-cache',
  access: 'cache:clear',
  responses: { 200: { description: 'Cache cleared.', schema: cleared } },
  errors: ['cache_unavailable'],
});

const ids = z.array(id).min(1).max(1_000).describe('1 to 1,000 IDs. Duplicates are cleared once.');

export const clearModel = define('clearModel', 'POST', '/api/admin/cache/clear-model', {
  rateLimit: { requests: 60_000, seconds: 60 },
  summary: 'Clear records of a model from the cache.',
  description:
    'After a 200, every read that starts later returns the current version of each record. Send either `id` or `ids`. After any other reply, repeat the whole call.',
  body: { ...jsonBodyOf(eitherOf({ model }, { id, ids })), maxBytes: 32_768 },
});

/** The origin of a clear. Also the label values of the metrics about clears. */
export const invalidationSources = ['http', 'kafka', 'retry', 'pending', 'recovery', 'watch'] as const;
export type InvalidationSource = (typeof invalidationSources)[number];

const invalidation = z.strictObject({
  id,
  at: time,
  source: z
    .enum(invalidationSources)
    .describe(
      '`http`: a call. `kafka`: an event. `retry`: a retried failed job. `pending`: a clear that the cache refused before. `recovery`: a possible loss of events. `watch`: a change that was not announced in time, or a new or restored database.',
    ),
  requested_by: z
    .string()
    .describe(
      'Machine client, `user:<id>` (`user` once the user was deleted), or `<topic>/<partition>/<offset>` of the event.',
    ),
  target: z.string().describe('`<model>:<id>`, or `<model>:*` for every record of the model.'),
  keys_deleted: cleared.shape.keys_deleted,
});

export const listInvalidations = define('listInvalidations', 'GET', '/api/admin/cache/invalidations', {
  access: ['cache:clear', 'jobs:manage'],
  summary: 'List cache clears, newest first.',
  description:
    'Clears are listed for 30 days, one item for each record. An item can appear up to a second after the reply to its clear. If a process crashes, the items of its last second are lost.',
  query: z
    .strictObject({
      model: model.optional(),
      id: idSegment.optional().describe('Select clears of this record of `model` and of the whole model.'),
      since: since.optional().describe('Select clears at this time or later.'),
      ...pageQuery,
    })
    .refine(({ model: named, id: one }) => one === undefined || named !== undefined, {
      path: ['id'],
      message: 'Send the model, too.',
    }),
  responses: { 200: { description: 'A page of clears.', schema: page(invalidation) } },
  errors: [],
});

export const clearPattern = define('clearPattern', 'POST', '/api/admin/cache/clear-pattern', {
  summary: 'Clear all records of a model.',
  body: jsonBody({ pattern: modelPattern }),
});
