import { createTracer, type RecordedSpan } from '../telemetry/tracer.ts';
import { setTracer } from '../context.ts';

/** Starts tracing in this process and samples `ratio` of the traces. The returned list grows by each span that is sent. */
export function sentSpans(ratio = 0): RecordedSpan[] {
  const sent: RecordedSpan[] = [];
  const send = (span: RecordedSpan) => void sent.push(span);
  setTracer(createTracer({ ratio, send, shutdown: () => Promise.resolve() }));
  return sent;
}
