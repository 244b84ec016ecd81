import { parseTraceParent } from '@opentelemetry/core';
import type { SpanContext } from '@opentelemetry/api';
import type { TraceHeaders } from '../tracing.ts';

/** The span that the headers name (https://www.w3.org/TR/trace-context/); undefined when they name none, or not well. */
export function spanNamedBy(headers: TraceHeaders | undefined): SpanContext | undefined {
  const given = headers?.['traceparent'];
  // kafkajs gives values as bytes, and several under one name as a list.
  const value: unknown = Array.isArray(given) ? given[0] : given;
  if (typeof value !== 'string' && !Buffer.isBuffer(value)) return undefined;
  return parseTraceParent(value.toString()) ?? undefined;
}

/** `sampled`: the whole trace is wanted, and not only what is slow or fails. */
export function traceparent(traceId: string, spanId: string, sampled: boolean): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}
