import { z } from 'zod';
import { endpointsWith, jsonBody } from './endpoint.ts';
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

/** A time that PostgreSQL accepts: its years begin with 1, and it has at most six digits of a second. */
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
const params = z.strictObject({ id: idSegment });

const define = endpointsWith({
  service: 'content-cache',
  access: 'jobs:manage',
});

export const listFailedJobs = define('listFailedJobs', 'GET', '/api/admin/failed-jobs', {
  summary: 'List events that could not be processed, newest first.',
  query: z.strictObject({
    class: failedJobClass.optional(),
    state: state.optional(),
    ...filters,
    ...pageQuery,
  }),
  responses: { 200: { description: 'A page of failed jobs.', schema: page(failedJob) } },
});

export const listFailedJobClasses = define('listFailedJobClasses', 'GET', '/api/admin/failed-jobs/classes', {
  summary: 'Count events that could not be processed by their class, most frequent first.',
  query: z.strictObject({ state: state.default('open'), ...filters }),
  responses: {
    200: {
      description: 'The classes that have such jobs.',
      schema: z.strictObject({ items: z.array(failedJobGroup) }),
    },
  },
});

export const readFailedJob = define('readFailedJob', 'GET', '/api/admin/failed-jobs/:id', {
  summary: 'Read one failed job.',
  params,
  responses: { 200: { description: 'The failed job.', schema: failedJob } },
  errors: ['not_found'],
});

export const deleteFailedJob = define('deleteFailedJob', 'DELETE', '/api/admin/failed-jobs/:id', {
  summary: 'Forget a failed job.',
  params,
  responses: { 204: { description: 'Forgotten.' } },
  errors: ['not_found'],
});

export const deleteFailedJobs = define('deleteFailedJobs', 'DELETE', '/api/admin/failed-jobs', {
  summary: 'Delete all failed jobs that match, for at most 10 s; call again for the rest.',
  body: jsonBody(
    z
      .strictObject({
        class: failedJobClass.optional(),
        state: state.optional(),
        ...filters,
        dry_run: z.boolean().default(false).meta({ description: 'Count only.' }),
      })
      .refine(
        (given) => [given.class, given.model, given.state, given.since].some((value) => value !== undefined),
        'Give a class, model, state or since.',
      )
      .meta({ anyOf: ['class', 'model', 'state', 'since'].map((name) => ({ required: [name] })) }),
  ),
  responses: {
    200: {
      description: '`matched` jobs were found; `deleted` of them were deleted in this call.',
      schema: z.strictObject({ matched: z.int(), deleted: z.int() }),
    },
  },
});

export const retryFailedJob = define('retryFailedJob', 'POST', '/api/admin/failed-jobs/:id/retry', {
  summary: 'Process a failed job again.',
  params,
  responses: { 200: { description: 'Processed; the job is now `retried`.', schema: failedJob } },
  errors: ['not_found', 'retry_failed', 'cache_unavailable'],
});

export const retryFailedJobs = define('retryFailedJobs', 'POST', '/api/admin/failed-jobs/retry', {
  summary:
    'Process all open failed jobs that match again, oldest first, for at most 10 s; call again for the rest.',
  body: jsonBody(
    z.strictObject({
      class: failedJobClass.optional(),
      model: model.optional(),
      dry_run: z.boolean().default(false).meta({ description: 'Count only.' }),
      per_second: z.int().min(1).max(1000).default(50),
    }),
  ),
  responses: {
    200: {
      description: '`matched` open jobs were found; of them so many were tried in this call.',
      schema: z.strictObject({ matched: z.int(), retried: z.int(), failed: z.int() }),
    },
  },
  errors: ['cache_unavailable'],
});
