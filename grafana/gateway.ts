import { latencyLimits, pathsWithOwnLimit, targetGoals } from '@content-platform/contract';
import type { Board } from './dashboards.ts';
import { ranking, series } from './panels.ts';
import { quantiles, rates } from './queries.ts';

/** Routes with their own latency limit. The p95 over all routes excludes them. */
const unjudged = `route!~"${pathsWithOwnLimit.join('|')}"`;

export const gateway: Board = {
  uid: 'gateway',
  title: 'Gateway',
  description: 'Requests, failures, durations, limits and logins, as clients see them',
  panels: [
    series({
      title: 'How many requests arrive, by status?',
      description:
        'Normal: 2xx, some 304 and 4xx. 499: the client disconnected. 5xx are failures, except 501: a feature that is switched off. Requests refused because of overload have their own panel and are missing here.',
      unit: 'reqps',
      queries: rates('http_request_duration_seconds_count{service="gateway"}', ['status']),
    }),
    series({
      title: 'Which share of requests fails?',
      description:
        'Normal: 0. The budget is 0.1 %. Counts 5xx without 501 and without requests refused because of overload.',
      unit: 'percentunit',
      goal: { below: 0.001 },
      queries: { failed: 'gateway:failed_requests:ratio_rate5m' },
    }),
    series({
      title: 'How long do requests take?',
      description:
        'Normal: 95 % under 100 ms; the target is under 500 ms. Logins, tokens and uploads are excluded. The points lead to traces.',
      unit: 's',
      goal: { below: targetGoals.response_time_p95.goal },
      queries: quantiles(
        `http_request_duration_seconds_bucket{service="gateway", ${unjudged}}`,
        [50, 95, 99],
      ),
    }),
    ranking({
      title: 'Which endpoints are slowest?',
      description:
        'Normal: under 100 ms, except /api/login, /api/token and /api/upload, which are slower by design. 95th percentile.',
      unit: 's',
      goal: { below: targetGoals.response_time_p95.goal },
      queries: {
        '{{method}} {{route}}': 'endpoint:http_request_duration_seconds:p95_5m{service="gateway"} > 0',
      },
    }),
    ranking({
      title: 'Which endpoints are close to their latency limit?',
      description: `Normal: under 100 %. 95th percentile as a share of the limit: ${latencyLimits.usual} s, logins and tokens ${latencyLimits.login} s, uploads ${latencyLimits.upload} s from their last byte.`,
      unit: 'percentunit',
      goal: { below: 1 },
      queries: {
        '{{method}} {{route}}':
          'route:latency:p95_5m / on (method, route) max by (method, route) (latency_limit_seconds) > 0',
      },
    }),
    ranking({
      title: 'Which endpoints fail most?',
      description: 'Normal: 0. Failed requests (5xx without 501) in five minutes.',
      goal: { below: 1 },
      queries: {
        '{{method}} {{route}}':
          'sum by (method, route) (increase(http_request_duration_seconds_count{service="gateway", status=~"5..", status!="501"}[5m]))',
      },
    }),
    series({
      title: 'Why did requests to services fail?',
      description:
        'Normal: 0. connect: the service is unavailable; busy: all connections to it are in use; timeout: it hangs; broken: it stopped during a reply.',
      unit: 'reqps',
      queries: rates('gateway_upstream_errors_total', ['service', 'reason']),
    }),
    ranking({
      title: 'Which endpoints are rate limited?',
      description:
        'Normal: 0. Requests that got 429 in five minutes. Either one client sends too much, or the limits are too low.',
      queries: { '{{route}}': 'sum by (route) (increase(rate_limited_total[5m]))' },
    }),
    series({
      title: 'How many requests are refused because of overload?',
      description:
        'Normal: 0. Requests that got 503 overloaded, because more requests arrive than the gateways can answer. Start more gateways.',
      unit: 'reqps',
      queries: rates('requests_shed_total', ['service']),
    }),
    series({
      title: 'How many requests are slow?',
      description:
        'Normal: 0, apart from logins and uploads. Requests over SLOW_REQUEST_MS (default 500 ms) in five minutes. The dashboard Slow log lists them.',
      queries: { '{{route}}': 'sum by (route) (increase(slow_requests_total[5m]))' },
    }),
    series({
      title: 'What are the outcomes of logins?',
      description:
        'Normal: mostly success. failure and limited together indicate password guessing. refused: too many logins at once.',
      unit: 'reqps',
      queries: rates('logins_total', ['outcome']),
    }),
    series({
      title: 'How many refresh tokens were reused?',
      description:
        'Normal: 0, in one hour. Refresh tokens that were used after their replacement. RefreshTokenReused fires above 0.',
      goal: { below: 1 },
      queries: { reused: 'sum(increase(refresh_tokens_reused_total[1h]))' },
    }),
    series({
      title: 'Are mails sent?',
      description:
        'Normal: sent only. Attempts in 30 minutes. failed: the attempt is repeated. abandoned: the user gets no mail. The log of auth has the reason. MailsNotSent fires if attempts fail and none succeeds.',
      queries: { '{{outcome}}': 'sum by (outcome) (increase(mails_total[30m]))' },
    }),
    series({
      title: 'How old is the list of revoked sessions?',
      description:
        'Normal: up to 2 s. It grows while auth is unavailable; access tokens revoked in that time stay valid for up to 15 min.',
      unit: 's',
      goal: { below: 5 },
      queries: { '{{service}}': 'max by (service) (revocations_age_seconds)' },
    }),
    series({
      title: 'How long does a deleted user wait for erasure?',
      description:
        'Normal: under 60 s. Age of the oldest deletion that the service, or `logs` (the logs database), has not carried out. ErasureStalled fires above 1 h.',
      unit: 's',
      goal: { below: 60 },
      queries: { '{{service}}': 'max by (service) (erasure_lag_seconds)' },
    }),
  ],
};
