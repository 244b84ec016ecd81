import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api';
import type { IdGenerator } from '@opentelemetry/sdk-trace';
import { remoteSpanOf, type RecordedSpan } from './tracer.ts';

const kinds = { server: SpanKind.SERVER, consumer: SpanKind.CONSUMER, client: SpanKind.CLIENT };

/** Passes ended spans to the SDK. `ids` makes the SDK use the ids that the spans already have. */
export function createSender() {
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
    const sent = trace.getTracer('content-platform').startSpan(
      name,
      {
        kind: kinds[options.kind],
        attributes,
        links: linked ? [{ context: linked }] : [],
        startTime: epochMs + beganAt,
      },
      parentContext(span),
    );
    if (failed) sent.setStatus({ code: SpanStatusCode.ERROR });
    sent.end(epochMs + endedAt!);
  }

  return { ids, send };
}
