import { z } from 'zod';
import { endpointsWith, jsonBody, jsonBodyOf } from './endpoint.ts';
import { id, idParams, model, page, pageQuery, since, time } from './schemas.ts';

/** Reasons why an event could not be processed. Also the label values of the metric failed_jobs_total. */
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
  encoding: z.enum(['utf8', 'base64']).describe('Encoding of `key` and `value` in this reply.'),
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
  example: failedJob.describe('The newest job of the class.'),
});

const filters = {
  class: failedJobClass.optional(),
  state: state.optional(),
  model: model.optional(),
  since: since.optional().describe('Select jobs that failed at this time or later.'),
};
const dryRun = z.boolean().default(false).describe('Count only.');
const define = endpointsWith({ service: 'content-cache', access: 'jobs:manage' });

export const listFailedJobs = define('listFailedJobs', 'GET', '/api/admin/failed-jobs', {
  summary: 'List failed jobs, newest first.',
  description: 'A failed job is an event that could not be processed.',
  query: z.strictObject({ ...filters, ...pageQuery }),
  responses: { 200: { description: 'A page of failed jobs.', schema: page(failedJob) } },
});

export const listFailedJobClasses = define('listFailedJobClasses', 'GET', '/api/admin/failed-jobs/classes', {
  summary: 'Count failed jobs by class.',
  description: 'The most frequent class comes first.',
  query: z.strictObject({ state: state.default('open'), model: filters.model, since: filters.since }),
  responses: {
    200: {
      description: 'The classes that have matching jobs.',
      schema: z.strictObject({ items: z.array(failedJobGroup) }),
    },
  },
});

export const readFailedJob = define('readFailedJob', 'GET', '/api/admin/failed-jobs/:id', {
  summary: 'Read a failed job.',
  params: idParams,
  responses: { 200: { description: 'The failed job.', schema: failedJob } },
  errors: ['not_found'],
});

export const deleteFailedJob = define('deleteFailedJob', 'DELETE', '/api/admin/failed-jobs/:id', {
  summary: 'Delete a failed job.',
  params: idParams,
  responses: { 204: { description: 'Failed job deleted.' } },
  errors: ['not_found'],
});

export const deleteFailedJobs = define('deleteFailedJobs', 'DELETE', '/api/admin/failed-jobs', {
  summary: 'Delete failed jobs that match a filter.',
  description: 'Runs for at most 10 s. If `deleted` is less than `matched`, repeat the call.',
  body: jsonBodyOf(
    z
      .strictObject({ ...filters, dry_run: dryRun })
      .refine(
        (given) => [given.class, given.model, given.state, given.since].some((value) => value !== undefined),
        'Give a class, model, state or since.',
      )
      .meta({ anyOf: ['class', 'model', 'state', 'since'].map((name) => ({ required: [name] })) }),
  ),
  responses: {
    200: {
      description: 'Numbers of matching jobs, and of jobs that this call deleted.',
      schema: z.strictObject({ matched: z.int(), deleted: z.int() }),
    },
  },
});

export const retryFailedJob = define('retryFailedJob', 'POST', '/api/admin/failed-jobs/:id/retry', {
  summary: 'Retry a failed job.',
  params: idParams,
  responses: {
    200: { description: 'The retry succeeded. The job now has the state `retried`.', schema: failedJob },
  },
  errors: ['not_found', 'retry_failed', 'cache_unavailable'],
});

export const retryFailedJobs = define('retryFailedJobs', 'POST', '/api/admin/failed-jobs/retry', {
  summary: 'Retry open failed jobs that match a filter.',
  description:
    'Starts with the jobs that were retried least, the oldest first, and runs for at most 10 s. Jobs that fail again stay open: repeat the call until `retried` and `failed` of all calls together reach the `matched` of the first one.',
  body: jsonBody({
    class: failedJobClass.optional(),
    model: model.optional(),
    dry_run: dryRun,
    per_second: z.int().min(1).max(1000).default(50).describe('Maximum number of retries per second.'),
  }),
  responses: {
    200: {
      description: 'Numbers of matching open jobs, and of retries that succeeded and failed in this call.',
      schema: z.strictObject({ matched: z.int(), retried: z.int(), failed: z.int() }),
    },
  },
  errors: ['cache_unavailable'],
});
