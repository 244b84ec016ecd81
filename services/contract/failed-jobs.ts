import { z } from 'zod';
import { defineEndpoint } from './endpoint.ts';
import { id, idSegment, model, page, pageQuery, time } from './schemas.ts';

/** Why an event could not be processed. Also the label values of failed_jobs_total. */
export const failedJobClasses = [
  'not_json',
  'empty',
  'too_large',
  'unknown_model',
  'invalid_event',
  'events_lost',
] as const;
export const failedJobClass = z.enum(failedJobClasses);
export type FailedJobClass = z.infer<typeof failedJobClass>;

/** What PostgreSQL takes for a time: its years begin with 1, and a fraction has six digits there. */
const since = time.max(40, 'Has too many digits.').regex(/^(?!0000)/, 'The year must be 1 or later.');

const state = z.enum(['open', 'retried']);

const failedJob = z.strictObject({
  id,
  class: failedJobClass,
  error: z.string(),
  topic: z.string(),
  partition: z.int(),
  offset: z.int(),
  key: z.string().nullable(),
  value: z.string().nullable(),
  encoding: z.enum(['utf8', 'base64']).meta({ description: 'How key and value are written here.' }),
  state,
  attempts: z.int(),
  failed_at: time,
});
export type FailedJob = z.infer<typeof failedJob>;

const failedJobGroup = z.strictObject({
  class: failedJobClass,
  count: z.int().min(1),
  first_failed_at: time,
  last_failed_at: time,
  example: failedJob.meta({ description: 'The newest.' }),
});
export type FailedJobGroup = z.infer<typeof failedJobGroup>;

const filters = {
  model: model.optional(),
  since: since.optional().meta({ description: 'Only those that failed at this time or later.' }),
};
const rateLimit = { requests: 600, seconds: 60 };
const params = z.strictObject({ id: idSegment });

export const listFailedJobs = defineEndpoint({
  name: 'listFailedJobs',
  method: 'GET',
  path: '/api/admin/failed-jobs',
  service: 'content-cache',
  access: 'jobs:manage',
  rateLimit,
  summary: 'List events that could not be processed, newest first.',
  query: z.strictObject({
    class: failedJobClass.optional(),
    state: state.optional(),
    ...filters,
    ...pageQuery,
  }),
  responses: { 200: { description: 'A page of failed jobs.', schema: page(failedJob) } },
});

export const listFailedJobClasses = defineEndpoint({
  name: 'listFailedJobClasses',
  method: 'GET',
  path: '/api/admin/failed-jobs/classes',
  service: 'content-cache',
  access: 'jobs:manage',
  rateLimit,
  summary: 'Count events that could not be processed by their class, most frequent first.',
  query: z.strictObject({ state: state.default('open'), ...filters }),
  responses: {
    200: {
      description: 'The classes that have such jobs.',
      schema: z.strictObject({ items: z.array(failedJobGroup) }),
    },
  },
});

export const readFailedJob = defineEndpoint({
  name: 'readFailedJob',
  method: 'GET',
  path: '/api/admin/failed-jobs/:id',
  service: 'content-cache',
  access: 'jobs:manage',
  rateLimit,
  summary: 'Read one failed job.',
  params,
  responses: { 200: { description: 'The failed job.', schema: failedJob } },
  errors: ['not_found'],
});

export const deleteFailedJob = defineEndpoint({
  name: 'deleteFailedJob',
  method: 'DELETE',
  path: '/api/admin/failed-jobs/:id',
  service: 'content-cache',
  access: 'jobs:manage',
  rateLimit,
  summary: 'Forget a failed job.',
  params,
  responses: { 204: { description: 'Forgotten.' } },
  errors: ['not_found'],
});

export const retryFailedJob = defineEndpoint({
  name: 'retryFailedJob',
  method: 'POST',
  path: '/api/admin/failed-jobs/:id/retry',
  service: 'content-cache',
  access: 'jobs:manage',
  rateLimit,
  summary: 'Process a failed job again.',
  params,
  responses: { 200: { description: 'Processed; the job is now `retried`.', schema: failedJob } },
  errors: ['not_found', 'retry_failed', 'cache_unavailable'],
});

export const retryFailedJobs = defineEndpoint({
  name: 'retryFailedJobs',
  method: 'POST',
  path: '/api/admin/failed-jobs/retry',
  service: 'content-cache',
  access: 'jobs:manage',
  rateLimit,
  summary:
    'Process all open failed jobs that match again, oldest first, for at most 10 s; call again for the rest.',
  body: {
    kinds: ['json'],
    maxBytes: 16_384,
    schema: z.strictObject({
      class: failedJobClass.optional(),
      model: model.optional(),
      dry_run: z.boolean().default(false).meta({ description: 'Count only.' }),
      per_second: z.int().min(1).max(1000).default(50),
    }),
  },
  responses: {
    200: {
      description: '`matched` open jobs were found; of them so many were tried in this call.',
      schema: z.strictObject({ matched: z.int(), retried: z.int(), failed: z.int() }),
    },
  },
  errors: ['cache_unavailable'],
});
