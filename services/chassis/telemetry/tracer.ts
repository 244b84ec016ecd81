import { AsyncLocalStorage } from 'node:async_hooks';
import { TraceFlags, type SpanContext } from '@opentelemetry/api';
import { RandomIdGenerator } from '@opentelemetry/sdk-trace';
import type { Tracer } from '../tracing.ts';
import { withTimeout } from '../with-timeout.ts';
import { createLocalTrace } from './local-trace.ts';
import { createSpan, type RecordedSpan } from './span.ts';
import { remoteSpanOf } from './traceparent.ts';

/** A collector that hangs does not delay the shutdown longer than this. */
const closeTimeoutMs = 1_000;

export interface TracerOptions {
  /** Part of the requests that are neither slow nor failed whose traces are sent, 0 to 1. */
  ratio: number;
  send(span: RecordedSpan): void;
  /** Sends the remaining spans. */
  shutdown(): Promise<void>;
}

/** Records spans, and sends those of slow and failed requests and events, and of `ratio` of the others. */
export function createTracer({ ratio, send, shutdown }: TracerOptions): Tracer {
  const active = new AsyncLocalStorage<RecordedSpan>();
  const ids = new RandomIdGenerator();

  function continueTrace(remote: SpanContext | undefined) {
    if (!remote) return createLocalTrace(ids.generateTraceId(), Math.random() < ratio, send);
    return createLocalTrace(remote.traceId, (remote.traceFlags & TraceFlags.SAMPLED) !== 0, send);
  }

  return {
    begin(name, options) {
      if (options.kind === 'client') {
        const parent = active.getStore();
        return parent && createSpan({ parent, name, options, trace: parent.trace, active });
      }
      const remote = remoteSpanOf(options.parent);
      return createSpan({ parent: remote?.spanId, name, options, trace: continueTrace(remote), active });
    },
    active: () => active.getStore(),
    outside: (work) => active.exit(work),
    async close() {
      await withTimeout(
        shutdown().catch(() => undefined),
        closeTimeoutMs,
      );
    },
  };
}
