import { parseTraceParent } from '@opentelemetry/core';
import type { SpanContext } from '@opentelemetry/api';
import type { TraceHeaders } from '../tracing.ts';

/** Returns the span that `traceparent` names (W3C Trace Context); undefined without a well-formed header. */
export function remoteSpanOf(headers: TraceHeaders | undefined): SpanContext | undefined {
  const given = headers?.['traceparent'];
  // kafkajs passes values as bytes, and several values of one name as a list.
  const value: unknown = Array.isArray(given) ? given[0] : given;
  if (typeof value !== 'string' && !Buffer.isBuffer(value)) return undefined;
  return parseTraceParent(value.toString()) ?? undefined;
}

/** Writes a traceparent header. `sampled`: every process sends its part, even if it is neither slow nor failed. */
export function traceparent(traceId: string, spanId: string, sampled: boolean): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}
