import { setTimeout as sleep } from 'node:timers/promises';
import { context, ROOT_CONTEXT, SpanKind, trace, type Context, type Link } from '@opentelemetry/api';
import type { SpanOptions, Tracer } from '../tracing.ts';
import { contextOf } from './propagation.ts';
import { TracedSpan } from './span.ts';

/** A collector that hangs does not keep a process that is told to stop. */
const closeMs = 1_000;

const kinds = { server: SpanKind.SERVER, consumer: SpanKind.CONSUMER, client: SpanKind.CLIENT };

function linksTo(options: SpanOptions): Link[] {
  const linked = options.link && trace.getSpanContext(contextOf(options.link));
  return linked ? [{ context: linked }] : [];
}

/** Our spans over OpenTelemetry's; `shutdown` sends what is left. */
export function createTracer(shutdown: () => Promise<void>): Tracer {
  const tracer = trace.getTracer('content-platform');

  function parentOf({ kind, parent }: SpanOptions): Context | undefined {
    if (kind !== 'client') return parent ? contextOf(parent) : ROOT_CONTEXT;
    const active = context.active();
    return trace.getSpan(active) && active;
  }

  return {
    begin(name, options) {
      const parent = parentOf(options);
      if (!parent) return undefined;
      const { kind, attributes = {} } = options;
      const span = tracer.startSpan(name, { kind: kinds[kind], attributes, links: linksTo(options) }, parent);
      return new TracedSpan(span, parent);
    },
    activeTraceId: () => trace.getSpanContext(context.active())?.traceId,
    outside: (work) => context.with(ROOT_CONTEXT, work),
    async close() {
      await Promise.race([shutdown().catch(() => undefined), sleep(closeMs, undefined, { ref: false })]);
    },
  };
}
