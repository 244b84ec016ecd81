import { latencyLimits, pathsWithOwnLimit, targetGoals } from '@content-platform/contract';
import type { Board } from './board.ts';
import { ranking, series } from './panels.ts';
import { quantiles, rates } from './queries.ts';

/** The p95 over all routes leaves them out, too. */
const unjudged = `route!~"${pathsWithOwnLimit.join('|')}"`;

/** What clients see. */
export const gateway: Board = {
  uid: 'gateway',
  title: 'Gateway',
  description: 'What clients see: requests, failures, durations, limits, logins',
  panels: [
    series({
      title: 'How many requests arrive, and how do they end?',
      description:
        'Normal: 2xx, some 304 and 4xx. 499: the client went away. 5xx are failures, apart from 501: a feature that is off.',
      unit: 'reqps',
      queries: [rates('http_request_duration_seconds_count{service="gateway"}', ['status'])],
    }),
    series({
      title: 'Which share of requests fails?',
      description: 'Normal: 0; the budget is 0.1 %. 5xx without 501.',
      unit: 'percentunit',
      goal: { below: 0.001 },
      queries: [{ expr: 'gateway:failed_requests:ratio_rate5m', legend: 'failed' }],
    }),
    series({
      title: 'How long do requests take?',
      description:
        'Normal: 95 % under 100 ms; the target is under 500 ms. Logins, tokens and uploads are left out. The points lead to traces.',
      unit: 's',
      goal: { below: targetGoals.response_time_p95.goal },
      queries: quantiles(
        `http_request_duration_seconds_bucket{service="gateway", ${unjudged}}`,
        [50, 95, 99],
      ),
    }),
    ranking({
      title: 'Which endpoints take longest?',
      description:
        'Normal: under 100 ms, but /api/login, /api/token and /api/upload, which take long on purpose. 95 % of requests are faster than this.',
      unit: 's',
      goal: { below: targetGoals.response_time_p95.goal },
      queries: [
        {
          expr: 'endpoint:http_request_duration_seconds:p95_5m{service="gateway"} > 0',
          legend: '{{method}} {{route}}',
        },
      ],
    }),
    ranking({
      title: 'Which endpoints come close to their latency limit?',
      description: `Normal: under 1. What 95 % of requests take, as a part of the limit: ${latencyLimits.usual} s, of logins and tokens ${latencyLimits.login} s, of uploads ${latencyLimits.upload} s from their last byte on.`,
      unit: 'percentunit',
      goal: { below: 1 },
      queries: [
        {
          expr: 'route:latency:p95_5m / on (method, route) max by (method, route) (latency_limit_seconds) > 0',
          legend: '{{method}} {{route}}',
        },
      ],
    }),
    ranking({
      title: 'Which endpoints fail most?',
      description: 'Normal: 0 for all. Failed requests (5xx without 501) within five minutes.',
      goal: { below: 1 },
      queries: [
        {
          expr: 'sum by (method, route) (increase(http_request_duration_seconds_count{service="gateway", status=~"5..", status!="501"}[5m]))',
          legend: '{{method}} {{route}}',
        },
      ],
    }),
    series({
      title: 'Why could services not answer?',
      description:
        'Normal: 0. connect: the service is away; busy: all connections to it are in use; timeout: it hangs; broken: it died in the middle.',
      unit: 'reqps',
      queries: [rates('gateway_upstream_errors_total', ['service', 'reason'])],
    }),
    ranking({
      title: 'Which endpoints are called too often?',
      description:
        'Normal: 0. Requests that were answered 429 within five minutes: one client, or limits that are too low.',
      queries: [{ expr: 'sum by (route) (increase(rate_limited_total[5m]))', legend: '{{route}}' }],
    }),
    series({
      title: 'How many requests are refused because there is too much to do?',
      description:
        "Normal: 0. Requests that were answered 503 at once: the gateways' cores are full. More gateways, or fewer requests.",
      unit: 'reqps',
      queries: [rates('requests_shed_total', ['service'])],
    }),
    series({
      title: 'How many requests are slow?',
      description:
        'Normal: 0, or logins and uploads. Requests over SLOW_REQUEST_MS (500 ms unless configured) within five minutes; which: Slow log.',
      queries: [{ expr: 'sum by (route) (increase(slow_requests_total[5m]))', legend: '{{route}}' }],
    }),
    series({
      title: 'How do logins end?',
      description:
        'Normal: mostly success. failure and limited together: somebody guesses passwords; refused: too many log in at once.',
      unit: 'reqps',
      queries: [rates('logins_total', ['outcome'])],
    }),
    series({
      title: 'How old is what is known of ended sessions?',
      description:
        'Normal: under 1 s. While auth is away it grows, and access tokens that were ended meanwhile go on for up to 15 min.',
      unit: 's',
      goal: { below: 5 },
      queries: [{ expr: 'max by (service) (revocations_age_seconds)', legend: '{{service}}' }],
    }),
  ],
};
