import { Counter } from 'prom-client';
import type { Endpoint } from '@content-platform/contract';
import type { Metrics } from '@content-platform/chassis';

/** Why a service could not answer: no connection, none free, no answer in time, an answer that broke off. */
const upstreamReasons = ['connect', 'busy', 'timeout', 'broken'] as const;
export type UpstreamReason = (typeof upstreamReasons)[number];

/** The signals of the gateway, on the process's registry. */
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
  metrics.expect(endpoints);
  for (const { path } of endpoints) rateLimited.inc({ route: path }, 0);
  for (const service of services) {
    for (const reason of upstreamReasons) upstreamErrors.inc({ service, reason }, 0);
  }
  return { ...metrics, rateLimited, upstreamErrors, requestsShed };
}

export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>;
