import type { ServerResponse } from 'node:http';
import {
  collectDefaultMetrics,
  Counter,
  Gauge,
  Histogram,
  Registry,
  type HistogramConfiguration,
} from 'prom-client';
import type { Endpoint } from '@content-platform/contract';
import { activeSpan } from './context.ts';

/** In seconds; 0.2 and 0.5 are the limits of slow queries and slow requests. */
export const durationBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2.5, 5, 10];

/**
 * Creates a histogram whose observations may have exemplars. It is registered afterwards, because prom-client refuses
 * exemplars in a registry that can also render the plain text format.
 */
export function durations<Label extends string>(
  registry: Registry,
  config: Omit<HistogramConfiguration<Label>, 'registers' | 'enableExemplars'>,
): Histogram<Label> {
  const histogram = new Histogram<Label>({ ...config, enableExemplars: true, registers: [] });
  registry.registerMetric(histogram);
  return histogram;
}

/** Creates the metrics of every process; a service adds its own to `registry`. */
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
  const slowQueries = new Counter({
    name: 'slow_queries_total',
    help: 'Queries over SLOW_QUERY_MS',
    registers,
  });
  const slowThreshold = new Gauge({
    name: 'slow_threshold_seconds',
    help: 'SLOW_QUERY_MS (kind="query") and SLOW_REQUEST_MS (kind="request") as configured',
    labelNames: ['kind'],
    registers,
  });
  const slowLogDropped = new Counter({
    name: 'slow_log_dropped_total',
    help: 'Slow log rows that were not written because the logs database was unavailable or too slow',
    registers,
  });
  return {
    service,
    registry,
    requestDuration,
    queryDuration,
    slowQueries,
    slowThreshold,
    slowLogDropped,
    /** Creates the series of these endpoints at the start: a rate misses the first event of a series that appears later. */
    expect(endpoints: readonly Endpoint[]): void {
      for (const { method, path: route, responses } of endpoints) {
        for (const status of Object.keys(responses)) requestDuration.zero({ service, method, route, status });
      }
    },
  };
}

/** Observes a duration. If its trace is certain to be sent, the trace's id is the exemplar of the observation. */
export function observe<Label extends string>(
  histogram: Histogram<Label>,
  labels: Partial<Record<Label, string>>,
  seconds: number,
  traceId = activeSpan()?.sentTraceId,
): void {
  // The names of exemplar labels differ from the histogram's; prom-client's types do not allow that.
  const exemplarLabels = (traceId === undefined ? {} : { trace_id: traceId }) as typeof labels;
  histogram.observe({ labels, value: seconds, exemplarLabels });
}

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Returns the method as a label value from a fixed set, so that clients cannot create series. */
export function methodLabel(method: string | undefined): string {
  return method !== undefined && methods.has(method) ? method : 'other';
}

/** Status for a client that disconnected before the reply, as in nginx. */
const clientClosedRequest = 499;

/** Returns the status sent by a closed `response`, or 499 if the client disconnected before the reply. */
export const statusOf = ({ headersSent, statusCode }: ServerResponse): number =>
  headersSent ? statusCode : clientClosedRequest;

export type Metrics = ReturnType<typeof createMetrics>;
