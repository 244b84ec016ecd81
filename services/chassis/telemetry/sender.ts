import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api';
import type { IdGenerator } from '@opentelemetry/sdk-trace';
import type { RecordedSpan } from './span.ts';
import { spanNamedBy } from './traceparent.ts';

const kinds = { server: SpanKind.SERVER, consumer: SpanKind.CONSUMER, client: SpanKind.CLIENT };

/** Gives the SDK spans that have ended, under the ids that they were given when they began. */
export function createSender() {
  let next: RecordedSpan;
  const ids: IdGenerator = { generateTraceId: () => next.traceId, generateSpanId: () => next.id };

  function contextOf({ traceId, parentId }: RecordedSpan) {
    if (parentId === undefined) return ROOT_CONTEXT;
    return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId: parentId, traceFlags: TraceFlags.SAMPLED });
  }

  function send(span: RecordedSpan): void {
    next = span;
    const { name, attributes, failed, beganAt, endedAt, options } = span;
    const { epoch } = span.trace;
    const linked = spanNamedBy(options.link);
    const sent = trace.getTracer('content-platform').startSpan(
      name,
      {
        kind: kinds[options.kind],
        attributes,
        links: linked ? [{ context: linked }] : [],
        startTime: epoch + beganAt,
      },
      contextOf(span),
    );
    if (failed) sent.setStatus({ code: SpanStatusCode.ERROR });
    sent.end(epoch + endedAt!);
  }

  return { ids, send };
}
