import { z } from 'zod';
import { endpointsWith, ifNoneMatch, notModified } from './endpoint.ts';
import { failedJobClass } from './failed-jobs.ts';
import { fileName, id, idSegment, model, multiLineText, time } from './schemas.ts';

/** The five targets. */
export const targetNames = [
  'response_time_p95',
  'invalidation_queue',
  'failed_jobs',
  'hit_ratio',
  'cache_memory',
] as const;

const count = z.int().min(0);
const ratio = z.number().min(0).max(1);
const seconds = z.number().min(0);
const bytes = z.number().min(0);

const target = z.strictObject({
  name: z.enum(targetNames),
  value: z
    .number()
    .nullable()
    .meta({ description: 'null: too little happened to judge by, or nobody told.' }),
  goal: z.number().nullable().meta({ description: 'null: there is none, as no limit is set.' }),
  comparison: z.enum(['below', 'above', 'equal']).meta({ description: 'How value must stand to goal.' }),
  unit: z.enum(['seconds', 'count', 'ratio', 'bytes']),
  ok: z.boolean().meta({ description: 'false: missed, or not known.' }),
  note: z.string().optional().meta({
    description:
      'What the value counts, where that depends on the configuration, for example that Kafka is not configured.',
  }),
});
export type Target = z.output<typeof target>;

const route = z.strictObject({
  method: z.string(),
  route: z.string(),
  requests: count,
  failed: count.meta({ description: 'Answered with 500 or more, 501 aside.' }),
  p95: seconds,
});

const cache = z.strictObject({
  memory_bytes: bytes.nullable(),
  memory_limit_bytes: bytes.nullable().meta({ description: 'null: none.' }),
  models: z.array(
    z.strictObject({
      model,
      hits: count,
      misses: count,
      bypasses: count,
      hit_ratio: ratio.nullable(),
      invalidations_missed: count.meta({
        description: 'Changes in the last hour that nobody announced and the watch found.',
      }),
    }),
  ),
});

const processState = z.strictObject({
  service: z.string().nullable().meta({ description: 'null: it has not answered yet.' }),
  address: z.string(),
  up: z.boolean(),
  cpu: z
    .number()
    .min(0)
    .nullable()
    .meta({ description: 'Of one core, over the last minute; 1 is all of it.' }),
  memory_bytes: bytes.nullable(),
  event_loop_delay: seconds.nullable().meta({ description: 'The 99th percentile.' }),
  started_at: time.nullable(),
  restarts: count.meta({ description: 'Seen in the last hour.' }),
});

const slow = { count, slowest_ms: z.number().min(0), newest_at: time, trace_id: z.string().nullable() };
const slowRequest = z.strictObject({ method: z.string(), route: z.string(), ...slow });
const slowQuery = z.strictObject({ service: z.string(), statement: z.string(), ...slow });
const slowLog = z.strictObject({ requests: z.array(slowRequest), queries: z.array(slowQuery) });

const failedJobGroup = z.strictObject({
  class: failedJobClass,
  count,
  first_failed_at: time,
  last_failed_at: time,
  example: z
    .strictObject({ id, error: z.string(), attempts: count, failed_at: time })
    .meta({ description: 'The newest.' }),
});

export const pulseReport = z.strictObject({
  at: time.nullable().meta({ description: 'Of the last sample; null before the first.' }),
  targets: z.array(target),
  routes: z.array(route).meta({ description: 'At the gateway, in the last 5 minutes; slowest first.' }),
  cache: cache.meta({ description: 'Reads of the last 5 minutes.' }),
  processes: z.array(processState),
  slow: slowLog.nullable().meta({
    description: 'In the last hour, grouped, newest first; null: not available.',
  }),
  failed_jobs: z.array(failedJobGroup).nullable().meta({
    description:
      'The open ones by class, most frequent first; null: not available, or the token lacks jobs:manage.',
  }),
});
export type PulseReport = z.output<typeof pulseReport>;

const errors = ['token_required', 'invalid_token', 'insufficient_scope', 'password_change_required'] as const;
const html = 'text/html; charset=utf-8';
const signInPage = { description: 'The page to sign in, for a browser.', contentType: html } as const;
const forbiddenPage = { description: 'A page that says why, for a browser.', contentType: html } as const;
const toThePage = { description: 'To the page.', headers: { Location: '/pulse' } };

const define = endpointsWith({
  service: 'pulse',
  access: 'public',
  rateLimit: { requests: 1_200, seconds: 60 },
});

export const pulse = define('pulse', 'GET', '/pulse', {
  cookies: true,
  summary: 'The targets at a glance: a page for browsers, JSON for others. Needs the scope pulse:view.',
  headers: { Authorization: 'Bearer and an access token; a browser is asked to sign in.' },
  query: z.strictObject({
    job: idSegment.optional().meta({ description: 'A failed job that was just tried again.' }),
    outcome: z.enum(['done', 'failed', 'gone', 'unavailable']).optional(),
  }),
  responses: {
    200: { description: 'How it stands.', schema: pulseReport, page: true },
    401: signInPage,
    403: forbiddenPage,
  },
  errors,
});

export const pulseSignIn = define('pulseSignIn', 'POST', '/pulse/sign-in', {
  cookies: true,
  latencyClass: 'login',
  rateLimit: { requests: 60, seconds: 60, guessing: true },
  summary: 'Sign in at the page, with the form it shows.',
  body: {
    kinds: ['form'],
    maxBytes: 16_384,
    schema: z.strictObject({
      email: multiLineText(1, 254).normalize('NFC'),
      password: multiLineText(1, 1024),
    }),
  },
  responses: {
    303: { ...toThePage, headers: { ...toThePage.headers, 'Set-Cookie': 'For /pulse alone.' } },
    401: signInPage,
    403: forbiddenPage,
    429: signInPage,
    503: signInPage,
  },
  errors: ['other_origin', 'invalid_credentials', 'insufficient_scope', 'password_change_required'],
});

export const pulseSignOut = define('pulseSignOut', 'POST', '/pulse/sign-out', {
  cookies: true,
  summary: 'Sign out of the page.',
  responses: { 303: toThePage, 403: forbiddenPage },
  errors: ['other_origin'],
});

export const pulseRetry = define('pulseRetry', 'POST', '/pulse/failed-jobs/:id/retry', {
  cookies: true,
  summary: 'Process a failed job again, from the page. Needs the scopes pulse:view and jobs:manage.',
  params: z.strictObject({ id: idSegment }),
  responses: {
    303: { ...toThePage, description: 'To the page, whose address says what came of it.' },
    401: signInPage,
    403: forbiddenPage,
  },
  errors: ['other_origin', ...errors],
});

export const pulseAsset = define('pulseAsset', 'GET', '/pulse/assets/:file', {
  summary: 'The script or the style sheet of the page.',
  params: z.strictObject({ file: fileName }),
  headers: ifNoneMatch,
  responses: {
    200: { description: 'The file.', contentType: '*/*' },
    ...notModified,
  },
  errors: ['not_found'],
});
