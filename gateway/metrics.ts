import { latencyClassOf, latencyLimits, type Endpoint } from '@content-platform/contract';
import { durationBuckets, type Metrics } from '@content-platform/chassis';

/** Failures of a service: no connection, no free slot, no reply in time, an incomplete reply. */
const upstreamReasons = ['connect', 'busy', 'timeout', 'broken'] as const;
export type UpstreamReason = (typeof upstreamReasons)[number];

export function createGatewayMetrics(
  metrics: Metrics,
  endpoints: readonly Endpoint[],
  services: readonly string[],
) {
  const { counter, durations, gauge } = metrics;
  const rateLimited = counter('rate_limited_total', 'Requests answered 429', 'route');
  const upstreamErrors = counter(
    'gateway_upstream_errors_total',
    'Requests that a service could not answer',
    'service',
    'reason',
  );
  const requestsShed = counter(
    'requests_shed_total',
    'Requests answered 503 at once because the process was overloaded',
  );
  const slowRequests = counter('slow_requests_total', 'Requests over SLOW_REQUEST_MS', 'route');
  const responseDuration = durations(
    'http_response_duration_seconds',
    "Time from the last byte of an upload to the end of the reply: without the client's time for sending it",
    durationBuckets,
    'service',
    'method',
    'route',
    'status',
  );
  const latencyLimit = gauge(
    'latency_limit_seconds',
    'Limit for the 95th percentile of a route; of class upload by http_response_duration_seconds, otherwise by http_request_duration_seconds',
    'method',
    'route',
    'class',
  );
  metrics.createSeries(endpoints);
  for (const endpoint of endpoints) {
    const { method, path: route } = endpoint;
    const latencyClass = latencyClassOf(endpoint);
    rateLimited.inc({ route }, 0);
    slowRequests.inc({ route }, 0);
    latencyLimit.set({ method, route, class: latencyClass }, latencyLimits[latencyClass]);
    // Without a series at 0, alerts would miss a route's first failure. `responses` has no failures; most are 503.
    metrics.requestDuration.zero({ service: metrics.service, method, route, status: '503' });
    if (latencyClass === 'upload') metrics.createSeries([endpoint], responseDuration);
  }
  for (const service of services)
    for (const reason of upstreamReasons) upstreamErrors.inc({ service, reason }, 0);
  return { ...metrics, rateLimited, upstreamErrors, requestsShed, slowRequests, responseDuration };
}

export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>;
