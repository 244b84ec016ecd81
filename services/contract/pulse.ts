import { z } from 'zod';
import { endpointsWith, ifNoneMatch, notModified } from './endpoint.ts';
import { failedJobClass } from './failed-jobs.ts';
import { fileName, id, idParams, idSegment, model, multiLineText, time } from './schemas.ts';

const count = z.int().min(0);
const ratio = z.number().min(0).max(1);
const seconds = z.number().min(0);
const bytes = z.number().min(0);

const target = z.strictObject({
  name: z.enum(['response_time_p95', 'invalidation_queue', 'failed_jobs', 'hit_ratio', 'cache_memory']),
  value: z.number().nullable().describe('Measured value. null if there were too few requests or no data.'),
  goal: z.number().nullable().describe('Target value. null if the limit that it depends on is not set.'),
  comparison: z
    .enum(['below', 'above', 'equal'])
    .describe('Relation of `value` to `goal` that meets the target.'),
  unit: z.enum(['seconds', 'count', 'ratio', 'bytes']),
  ok: z.boolean().describe('Whether the target is met. true with too few requests, false without data.'),
  note: z.string().optional().describe('Explanation of a value, for example that Kafka is not configured.'),
});
export type Target = z.output<typeof target>;

const route = z.strictObject({
  method: z.string(),
  route: z.string(),
  requests: count,
  failed: count.describe('Number of replies with status 500 or above, except 501.'),
  p95: seconds.describe('95th percentile of the response time in seconds.'),
});

const cache = z.strictObject({
  memory_bytes: bytes.nullable(),
  memory_limit_bytes: bytes.nullable().describe('Memory limit of Redis in bytes. null if no limit is set.'),
  models: z.array(
    z.strictObject({
      model,
      hits: count,
      misses: count,
      bypasses: count,
      hit_ratio: ratio.nullable(),
      invalidations_missed: count.describe('Number of changes in the last hour that were not announced.'),
    }),
  ),
});

const processState = z.strictObject({
  service: z.string().nullable().describe('Service name. null if the process has not responded yet.'),
  address: z.string().describe('URL of the internal listener.'),
  up: z.boolean(),
  cpu: z.number().min(0).nullable().describe('CPU load of the last minute in cores; 1 is one full core.'),
  memory_bytes: bytes.nullable(),
  event_loop_delay: seconds.nullable().describe('99th percentile of the event loop delay in seconds.'),
  started_at: time.nullable(),
  restarts: count.describe('Number of restarts in the last hour.'),
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
    .describe('The newest job of the class.'),
});

export const pulseReport = z.strictObject({
  at: time.nullable().describe('Time of the last sample. null before the first sample.'),
  targets: z.array(target),
  routes: z.array(route).describe('Routes of the gateway in the last 5 minutes, slowest first.'),
  cache: cache.describe('Cache memory, and cache reads of the last 5 minutes.'),
  processes: z.array(processState),
  slow: slowLog
    .nullable()
    .describe('Groups of the last hour, newest first, at most 10 in a list. null if unavailable.'),
  failed_jobs: z
    .array(failedJobGroup)
    .nullable()
    .describe(
      'Open failed jobs by class, most frequent first. null if unavailable or without `jobs:manage`.',
    ),
  alert_receivers: z
    .array(z.string())
    .nullable()
    .describe(
      'Kinds of receivers, for example `slack`. null if Alertmanager is unavailable or not configured.',
    ),
});
export type PulseReport = z.output<typeof pulseReport>;

const forbidden = ['insufficient_scope', 'password_change_required', 'mfa_enrollment_required'] as const;
const errors = ['token_required', 'invalid_token', ...forbidden] as const;
const html = 'text/html; charset=utf-8';
const signInPage = { description: 'For a browser, the sign-in page.', contentType: html } as const;
const forbiddenPage = { description: 'For a browser, a page with the reason.', contentType: html } as const;
const toThePage = { description: 'Redirects to the Pulse page.', headers: { Location: '/pulse' } };

const common = { service: 'pulse', access: 'public', rateLimit: { requests: 1_200, seconds: 60 } } as const;
const define = endpointsWith({ ...common, cookies: true });

export const pulse = define('pulse', 'GET', '/pulse', {
  summary: 'Show the state of the operating targets.',
  description: 'Returns a page to browsers and JSON to other clients. Requires the scope `pulse:view`.',
  headers: { Authorization: 'Bearer access token. A browser without a token gets the sign-in page.' },
  query: z.strictObject({
    job: idSegment.optional().describe('ID of the failed job that was just retried.'),
    outcome: z.enum(['done', 'failed', 'gone', 'unavailable']).optional(),
  }),
  responses: {
    200: { description: 'The current report.', schema: pulseReport, page: true },
    401: signInPage,
    403: forbiddenPage,
  },
  errors,
});

export const pulseSignIn = define('pulseSignIn', 'POST', '/pulse/sign-in', {
  latencyClass: 'login',
  rateLimit: { requests: 60, seconds: 60, guessing: true },
  summary: 'Sign in to the Pulse page.',
  description: 'Accepts the form of the sign-in page.',
  body: {
    kinds: ['form'],
    maxBytes: 16_384,
    schema: z.strictObject({
      email: multiLineText(1, 254).overwrite((one) => one.trim() || one), // auth answers '' with 422
      password: multiLineText(1, 1024),
      code: multiLineText(0, 100).optional().describe('Code of the second factor, or a recovery code.'),
    }),
  },
  responses: {
    303: {
      ...toThePage,
      headers: { ...toThePage.headers, 'Set-Cookie': 'Session cookie of the Pulse page.' },
    },
    401: signInPage,
    403: forbiddenPage,
    429: signInPage,
    503: signInPage,
  },
  errors: ['other_origin', 'invalid_credentials', 'mfa_required', ...forbidden],
});

export const pulseSignOut = define('pulseSignOut', 'POST', '/pulse/sign-out', {
  summary: 'Sign out of the Pulse page.',
  description: 'Ends the session of the cookie.',
  responses: { 303: toThePage, 403: forbiddenPage },
  errors: ['other_origin'],
});

export const pulseRetry = define('pulseRetry', 'POST', '/pulse/failed-jobs/:id/retry', {
  summary: 'Retry a failed job from the page.',
  description: 'Requires the scopes `pulse:view` and `jobs:manage`.',
  params: idParams,
  responses: {
    303: {
      ...toThePage,
      description: 'Redirects to the Pulse page. The query parameter `outcome` has the result.',
    },
    401: signInPage,
    403: forbiddenPage,
  },
  errors: ['other_origin', ...errors],
});

export const pulseAsset = endpointsWith(common)('pulseAsset', 'GET', '/pulse/assets/:file', {
  summary: 'Get an asset of the Pulse page.',
  description: 'Assets are the script and the style sheet.',
  params: z.strictObject({ file: fileName }),
  headers: ifNoneMatch,
  responses: { 200: { description: 'The file.', contentType: '*/*' }, ...notModified },
  errors: ['not_found'],
});
