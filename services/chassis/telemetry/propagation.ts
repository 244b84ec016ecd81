import {
  ROOT_CONTEXT,
  type Context,
  type TextMapGetter,
  type TextMapPropagator,
  type TextMapSetter,
} from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import type { TraceHeaders } from '../tracing.ts';

/** https://www.w3.org/TR/trace-context/ */
export const propagator: TextMapPropagator = new W3CTraceContextPropagator();

/** kafkajs gives header values as bytes, and several under one name as a list. */
const getter: TextMapGetter<TraceHeaders> = {
  keys: (headers) => Object.keys(headers),
  get(headers, name) {
    const given = headers[name];
    const value: unknown = Array.isArray(given) ? given[0] : given;
    return typeof value === 'string' || Buffer.isBuffer(value) ? value.toString() : undefined;
  },
};

const setter: TextMapSetter<Record<string, string>> = {
  set: (headers, name, value) => void (headers[name] = value),
};

/** The trace that the headers name; the root when they name none, or not well. */
export function contextOf(headers: TraceHeaders): Context {
  if (headers['traceparent'] === undefined) return ROOT_CONTEXT;
  return propagator.extract(ROOT_CONTEXT, headers, getter);
}

export function headersOf(context: Context): Record<string, string> {
  const headers: Record<string, string> = {};
  propagator.inject(context, headers, setter);
  return headers;
}
