import { createTracer } from '../telemetry/tracer.ts';
import { useTracer } from '../tracing.ts';

/** Starts tracing in this process, without random sampling. The returned list grows by each span that is sent. */
export function sentSpans(): { name: string; traceId: string }[] {
  const sent: { name: string; traceId: string }[] = [];
  const send = ({ name, traceId }: { name: string; traceId: string }) => void sent.push({ name, traceId });
  useTracer(createTracer({ ratio: 0, send, shutdown: () => Promise.resolve() }));
  return sent;
}
