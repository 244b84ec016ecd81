import {
  collectDefaultMetrics,
  Counter,
  Histogram,
  Registry,
  type HistogramConfiguration,
} from 'prom-client';
import type { Endpoint } from '@content-platform/contract';
import { activeSpan } from './tracing.ts';

/** 0.2 and 0.5 are the limits for slow queries and slow requests. */
export const durationBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2.5, 5, 10];

/**
 * A histogram whose observations may have exemplars (`observe`). prom-client makes one only for a registry that is
 * OpenMetrics, and ours is both (exposition.ts): so it is registered afterwards.
 */
export function durations<Label extends string>(
  registry: Registry,
  config: Omit<HistogramConfiguration<Label>, 'registers' | 'enableExemplars'>,
): Histogram<Label> {
  const histogram = new Histogram<Label>({ ...config, enableExemplars: true, registers: [] });
  registry.registerMetric(histogram);
  return histogram;
}

/** The signals that every process has. A service adds its own to `registry`. Durations in seconds. */
export function createMetrics(service: string) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const requestDuration = durations(registry, {
    name: 'http_request_duration_seconds',
    help: "Time from the request's head to the end of the reply",
    labelNames: ['service', 'method', 'route', 'status'],
    buckets: durationBuckets,
  });
  const queryDuration = durations(registry, {
    name: 'db_query_duration_seconds',
    help: 'Time of a database call, waiting for a connection included',
    labelNames: ['service', 'operation'],
    buckets: durationBuckets,
  });
  const slowRequests = new Counter({
    name: 'slow_requests_total',
    help: 'Requests over SLOW_REQUEST_MS',
    registers,
  });
  const slowQueries = new Counter({
    name: 'slow_queries_total',
    help: 'Queries over SLOW_QUERY_MS',
    registers,
  });
  const slowLogDropped = new Counter({
    name: 'slow_log_dropped_total',
    help: 'Slow log rows that were not written because the logs database was away or too slow',
    registers,
  });
  return {
    service,
    registry,
    requestDuration,
    queryDuration,
    slowRequests,
    slowQueries,
    slowLogDropped,
    /** Series whose labels are known exist from the start: a rate over a series that appears late misses its first. */
    expect(endpoints: readonly Endpoint[]): void {
      for (const { method, path: route, responses } of endpoints) {
        for (const status of Object.keys(responses)) requestDuration.zero({ service, method, route, status });
      }
    },
  };
}

/**
 * Observes a duration, in seconds. The trace that it belongs to is its exemplar, in OpenMetrics, if it is one that is
 * sent: `histogram` must have those enabled.
 */
export function observe<Label extends string>(
  histogram: Histogram<Label>,
  labels: Partial<Record<Label, string>>,
  seconds: number,
  traceId = activeSpan()?.sentTraceId,
): void {
  // Their names are not those of the labels, whatever the types say.
  const exemplarLabels = (traceId === undefined ? {} : { trace_id: traceId }) as typeof labels;
  histogram.observe({ labels, value: seconds, exemplarLabels });
}

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** The method as a label value: those come from a fixed set, never from the request. */
export function methodLabel(method: string | undefined): string {
  return method !== undefined && methods.has(method) ? method : 'other';
}

export type Metrics = ReturnType<typeof createMetrics>;
