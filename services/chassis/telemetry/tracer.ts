import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { TraceFlags, type SpanContext } from '@opentelemetry/api';
import { RandomIdGenerator } from '@opentelemetry/sdk-trace';
import type { Tracer } from '../tracing.ts';
import { LocalTrace } from './local-trace.ts';
import { RecordedSpan } from './span.ts';
import { spanNamedBy } from './traceparent.ts';

/** A collector that hangs does not keep a process that is told to stop. */
const closeMs = 1_000;

export interface TracerOptions {
  /** How many of the requests that are neither slow nor fail are sent, of 1. */
  ratio: number;
  send(span: RecordedSpan): void;
  /** Sends what is left. */
  shutdown(): Promise<void>;
}

/** Notes spans, and sends those of requests and events that are worth it: slow, failed, and `ratio` of the others. */
export function createTracer({ ratio, send, shutdown }: TracerOptions): Tracer {
  const active = new AsyncLocalStorage<RecordedSpan>();
  const ids = new RandomIdGenerator();

  function traceAfter(remote: SpanContext | undefined): LocalTrace {
    if (!remote) return new LocalTrace(ids.generateTraceId(), Math.random() < ratio, send);
    return new LocalTrace(remote.traceId, (remote.traceFlags & TraceFlags.SAMPLED) !== 0, send);
  }

  return {
    begin(name, options) {
      if (options.kind === 'client') {
        const parent = active.getStore();
        return parent && new RecordedSpan({ parent, name, options, trace: parent.trace, active });
      }
      const remote = spanNamedBy(options.parent);
      return new RecordedSpan({ parent: remote?.spanId, name, options, trace: traceAfter(remote), active });
    },
    active: () => active.getStore(),
    outside: (work) => active.exit(work),
    async close() {
      await Promise.race([shutdown().catch(() => undefined), sleep(closeMs, undefined, { ref: false })]);
    },
  };
}
