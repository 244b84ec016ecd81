import { Counter, Gauge } from 'prom-client';
import { latencyClassOf, latencyLimits, type Endpoint } from '@content-platform/contract';
import { durationBuckets, durations, type Metrics } from '@content-platform/chassis';

/** Failures of a service: no connection, no free slot, no reply in time, an incomplete reply. */
const upstreamReasons = ['connect', 'busy', 'timeout', 'broken'] as const;
export type UpstreamReason = (typeof upstreamReasons)[number];

/** Creates the gateway's metrics on the process's registry. */
export function createGatewayMetrics(
  metrics: Metrics,
  endpoints: readonly Endpoint[],
  services: readonly string[],
) {
  const registers = [metrics.registry];
  const rateLimited = new Counter({
    name: 'rate_limited_total',
    help: 'Requests answered 429',
    labelNames: ['route'],
    registers,
  });
  const upstreamErrors = new Counter({
    name: 'gateway_upstream_errors_total',
    help: 'Requests that a service could not answer',
    labelNames: ['service', 'reason'],
    registers,
  });
  const requestsShed = new Counter({
    name: 'requests_shed_total',
    help: 'Requests answered 503 at once because the process was overloaded',
    registers,
  });
  const slowRequests = new Counter({
    name: 'slow_requests_total',
    help: 'Requests over SLOW_REQUEST_MS',
    labelNames: ['route'],
    registers,
  });
  const responseDuration = durations(metrics.registry, {
    name: 'http_response_duration_seconds',
    help: "Time from the last byte of an upload to the end of the reply: without the client's time for sending it",
    labelNames: ['service', 'method', 'route', 'status'],
    buckets: durationBuckets,
  });
  const latencyLimit = new Gauge({
    name: 'latency_limit_seconds',
    help: 'Limit for the 95th percentile of a route; of class upload by http_response_duration_seconds, otherwise by http_request_duration_seconds',
    labelNames: ['method', 'route', 'class'],
    registers,
  });
  metrics.expect(endpoints);
  for (const endpoint of endpoints) {
    const { method, path: route, responses } = endpoint;
    const latencyClass = latencyClassOf(endpoint);
    rateLimited.inc({ route }, 0);
    slowRequests.inc({ route }, 0);
    latencyLimit.set({ method, route, class: latencyClass }, latencyLimits[latencyClass]);
    if (latencyClass !== 'upload') continue;
    for (const status of Object.keys(responses)) {
      responseDuration.zero({ service: metrics.service, method, route, status });
    }
  }
  for (const service of services) {
    for (const reason of upstreamReasons) upstreamErrors.inc({ service, reason }, 0);
  }
  return { ...metrics, rateLimited, upstreamErrors, requestsShed, slowRequests, responseDuration };
}

export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>;
