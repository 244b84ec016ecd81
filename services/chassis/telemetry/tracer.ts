import { setTimeout as sleep } from 'node:timers/promises';
import {
  context,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type Span as OtelSpan,
  type TextMapGetter,
} from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import type { Span, SpanOptions, TraceHeaders, Tracer } from '../tracing.ts';

/** A collector that hangs does not keep a process that is told to stop. */
const closeMs = 1_000;

const kinds = { server: SpanKind.SERVER, consumer: SpanKind.CONSUMER, client: SpanKind.CLIENT };
const propagator = new W3CTraceContextPropagator();

/** kafkajs gives header values as bytes, and several under one name as a list. */
const getter: TextMapGetter<TraceHeaders> = {
  keys: (headers) => Object.keys(headers),
  get(headers, name) {
    const value = [headers[name]].flat()[0];
    return typeof value === 'string' || Buffer.isBuffer(value) ? value.toString() : undefined;
  },
};
const setter = {
  set: (headers: Record<string, string>, name: string, value: string) => void (headers[name] = value),
};

/** The trace that the headers name; the root when they name none. */
function contextOf(headers: TraceHeaders): Context {
  return propagator.extract(ROOT_CONTEXT, headers, getter);
}

function errorType(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return String(code ?? name ?? '_OTHER');
}

function toSpan(span: OtelSpan, parent: Context): Span {
  const own = trace.setSpan(parent, span);
  return {
    traceId: span.spanContext().traceId,
    rename: (name) => void span.updateName(name),
    set(attributes) {
      if (span.isRecording()) span.setAttributes(attributes);
    },
    fail(error) {
      if (!span.isRecording()) return;
      span.setStatus({ code: SpanStatusCode.ERROR });
      if (error !== undefined) span.setAttribute('error.type', errorType(error));
    },
    end() {
      if (span.isRecording()) span.end();
    },
    run: (work) => context.with(own, work),
    headers() {
      const headers: Record<string, string> = {};
      propagator.inject(own, headers, setter);
      return headers;
    },
  };
}

/** Our spans over OpenTelemetry's; `shutdown` sends what is left. */
export function createTracer(shutdown: () => Promise<void>): Tracer {
  const tracer = trace.getTracer('content-platform');
  return {
    begin(name, { kind, attributes = {}, parent, link }: SpanOptions) {
      const active = context.active();
      if (kind === 'client' && !trace.getSpan(active)) return undefined;
      const within = kind === 'client' ? active : parent ? contextOf(parent) : ROOT_CONTEXT;
      const linked = link && trace.getSpanContext(contextOf(link));
      const links = linked ? [{ context: linked }] : [];
      return toSpan(tracer.startSpan(name, { kind: kinds[kind], attributes, links }, within), within);
    },
    activeTraceId: () => trace.getSpanContext(context.active())?.traceId,
    outside: (work) => context.with(ROOT_CONTEXT, work),
    async close() {
      await Promise.race([shutdown().catch(() => undefined), sleep(closeMs, undefined, { ref: false })]);
    },
  };
}
