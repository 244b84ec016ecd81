import { tracingChannel } from 'node:diagnostics_channel';
import {
  ROOT_CONTEXT,
  SamplingDecision,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
} from '@opentelemetry/api';
import { setGlobalErrorHandler } from '@opentelemetry/core';
import { envDetector, hostDetector, serviceInstanceIdDetector } from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
import type { IdGenerator } from '@opentelemetry/sdk-trace';
import { outsideContext, beginSpan, type Span, setTracer } from '../context.ts';
import { type Logger, createLogger } from '../logger.ts';
import { createTracer, remoteSpanOf, type RecordedSpan } from './tracer.ts';

const intervalMs = 60_000;

/** Returns a handler that logs lost traces: the first time, then at most once a minute, with the number of batches. */
export function createThrottledWarning(logger: Logger, now = () => performance.now()) {
  let loggedAt = -Infinity;
  let batches = 0;
  return (error: unknown): void => {
    batches += 1;
    if (now() - loggedAt < intervalMs) return;
    // The batch belongs to no single request, so the line must not carry a request id.
    outsideContext(() => logger.warn({ error, batches }, 'collector unreachable; traces were dropped'));
    loggedAt = now();
    batches = 0;
  };
}

/** One command on ioredis's diagnostics channel; the same object from its start to its end. */
interface CommandMessage {
  command: string;
  error?: unknown;
}

/** Creates a span for each Redis command that is part of a trace. */
function traceRedis(): void {
  const channel = tracingChannel<'ioredis:command', CommandMessage>('ioredis:command');
  const spans = new WeakMap<object, Span>();
  channel.start.subscribe((message) => {
    const name = (message as CommandMessage).command.toUpperCase();
    const attributes = { 'db.system.name': 'redis', 'db.operation.name': name };
    const span = beginSpan(name, { kind: 'client', attributes });
    if (span) spans.set(message as object, span);
  });
  channel.error.subscribe((message) => spans.get(message as object)?.fail((message as CommandMessage).error));
  channel.asyncEnd.subscribe((message) => spans.get(message as object)?.end());
}

const kinds = { server: SpanKind.SERVER, consumer: SpanKind.CONSUMER, client: SpanKind.CLIENT };

/** Passes ended spans to the SDK. `ids` makes the SDK use the ids that the spans already have. */
function createSender() {
  let next: RecordedSpan;
  const ids: IdGenerator = { generateTraceId: () => next.traceId, generateSpanId: () => next.id };

  function parentContext({ traceId, parentId }: RecordedSpan) {
    if (parentId === undefined) return ROOT_CONTEXT;
    return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId: parentId, traceFlags: TraceFlags.SAMPLED });
  }

  function send(span: RecordedSpan): void {
    next = span;
    const { name, attributes, failed, beganAt, endedAt, options } = span;
    const { epochMs } = span.trace;
    const linked = remoteSpanOf(options.link);
    const links = linked ? [{ context: linked }] : [];
    const begun = { kind: kinds[options.kind], attributes, links, startTime: epochMs + beganAt };
    const sent = trace.getTracer('content-platform').startSpan(name, begun, parentContext(span));
    if (failed) sent.setStatus({ code: SpanStatusCode.ERROR });
    sent.end(epochMs + endedAt!);
  }

  return { ids, send };
}

/** Starts tracing. The SDK reads further settings from OTEL_EXPORTER_OTLP_*, OTEL_BSP_* and OTEL_RESOURCE_ATTRIBUTES. */
export function startTelemetry(service: string, ratio: number): void {
  setGlobalErrorHandler(createThrottledWarning(createLogger(service)));
  const { ids, send } = createSender();
  const sdk = new NodeSDK({
    serviceName: service,
    idGenerator: ids,
    // The tracer has already sampled the spans.
    sampler: { shouldSample: () => ({ decision: SamplingDecision.RECORD_AND_SAMPLED }) },
    // The tracer reads and writes traceparent itself.
    textMapPropagator: null,
    // The default detectors also send the command line, the user and folders of the machine.
    resourceDetectors: [envDetector, hostDetector, serviceInstanceIdDetector],
    // Prometheus scrapes the metrics, and logs go to stdout.
    metricReaders: [],
    logRecordProcessors: [],
  });
  sdk.start();
  setTracer(createTracer({ ratio, send, shutdown: () => sdk.shutdown() }));
  traceRedis();
}
