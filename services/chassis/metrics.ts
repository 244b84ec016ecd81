import type { ServerResponse } from 'node:http';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Endpoint } from '@content-platform/contract';
import { activeSpan } from './context.ts';

/** In seconds; 0.2 and 0.5 are the limits of slow queries and slow requests. */
export const durationBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2.5, 5, 10];

/** Creates the metrics of every process; a service adds its own with the functions of the result. */
export function createMetrics(service: string) {
  const registry = new Registry();
  const registers = [registry];
  /** The labels are the last arguments. */
  const create = {
    counter<Label extends string>(name: string, help: string, ...labelNames: Label[]): Counter<Label> {
      return new Counter({ name, help, labelNames, registers });
    },
    gauge<Label extends string>(name: string, help: string, ...labelNames: Label[]): Gauge<Label> {
      return new Gauge({ name, help, labelNames, registers });
    },
    /**
     * Creates a gauge that each scrape sets to the result of `read`. If the result is undefined, the gauge keeps its
     * last value, at first NaN. If `read` fails, the gauge has no value, so that the alert MetricMissing fires.
     */
    measured(name: string, help: string, read: () => number | undefined | Promise<number | undefined>): void {
      const metric: Gauge = new Gauge({
        name,
        help,
        registers,
        async collect() {
          try {
            const value = await read();
            if (value !== undefined) metric.set(value);
          } catch {
            metric.remove();
          }
        },
      });
      metric.set(Number.NaN);
    },
    /** Creates a histogram with exemplars. prom-client refuses exemplars if the constructor registers the histogram. */
    durations<Label extends string>(name: string, help: string, buckets: number[], ...labelNames: Label[]) {
      const config = { name, help, buckets, labelNames, enableExemplars: true as const, registers: [] };
      const histogram = new Histogram<Label>(config);
      registry.registerMetric(histogram);
      return histogram;
    },
  };
  const requestDuration = create.durations(
    'http_request_duration_seconds',
    "Time from the request's head to the end of the reply; in the gateway, files and exports end with their head",
    durationBuckets,
    'service',
    'method',
    'route',
    'status',
  );
  return {
    service,
    registry,
    ...create,
    requestDuration,
    queryDuration: create.durations(
      'db_query_duration_seconds',
      'Time of a database call; operation connect: of waiting for a connection',
      durationBuckets,
      'service',
      'operation',
    ),
    slowQueries: create.counter('slow_queries_total', 'Queries over SLOW_QUERY_MS'),
    slowThreshold: create.gauge(
      'slow_threshold_seconds',
      'SLOW_QUERY_MS (kind="query") and SLOW_REQUEST_MS (kind="request") as configured',
      'kind',
    ),
    slowLogDropped: create.counter(
      'slow_log_dropped_total',
      'Slow log rows that were not written because the logs database was unavailable or too slow',
    ),
    /** Creates the endpoints' series in `histogram` at the start: a rate misses the first event of a later series. */
    createSeries(endpoints: readonly Endpoint[], histogram = requestDuration): void {
      for (const { method, path: route, responses } of endpoints) {
        for (const status of Object.keys(responses)) histogram.zero({ service, method, route, status });
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
