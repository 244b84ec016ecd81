import type { AsyncLocalStorage } from 'node:async_hooks';
import { RandomIdGenerator } from '@opentelemetry/sdk-trace';
import type { Attributes, Span, SpanOptions } from '../tracing.ts';
import type { LocalTrace } from './local-trace.ts';
import { traceparent } from './traceparent.ts';

/** A span as it is recorded; the values that only a sent span needs are computed when they are read. */
export interface RecordedSpan extends Span {
  readonly options: SpanOptions;
  readonly trace: LocalTrace<RecordedSpan>;
  /** On the process's monotonic clock, in ms. */
  readonly beganAt: number;
  readonly endedAt: number | undefined;
  readonly name: string;
  readonly failed: boolean;
  readonly id: string;
  readonly parentId: string | undefined;
  readonly attributes: Attributes;
}

export interface SpanStart {
  /** A span of this process, or the id of a span of another process. */
  parent: RecordedSpan | string | undefined;
  name: string;
  options: SpanOptions;
  trace: LocalTrace<RecordedSpan>;
  active: AsyncLocalStorage<RecordedSpan>;
}

function typeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return String(code ?? name ?? '_OTHER');
}

const ids = new RandomIdGenerator();

/** Begins a span of `trace`. */
export function createSpan({ parent, name, options, trace, active }: SpanStart): RecordedSpan {
  let id: string | undefined;
  let attributes = options.attributes;
  const span: { -readonly [Key in keyof RecordedSpan]: RecordedSpan[Key] } = {
    options,
    trace,
    traceId: trace.id,
    beganAt: performance.now(),
    endedAt: undefined,
    name,
    failed: false,
    get id() {
      return (id ??= ids.generateSpanId());
    },
    get parentId() {
      return typeof parent === 'object' ? parent.id : parent;
    },
    get attributes() {
      return attributes ?? {};
    },
    get sentTraceId() {
      return trace.isWanted() ? trace.id : undefined;
    },
    rename: (newName) => void (span.name = newName),
    set: (more) => void (attributes = { ...attributes, ...more }),
    fail(error) {
      span.failed = true;
      if (error !== undefined) span.set({ 'error.type': typeOf(error) });
    },
    keep: () => trace.want(),
    end() {
      if (span.endedAt !== undefined) return;
      span.endedAt = performance.now();
      if (options.kind === 'client') trace.add(span);
      else trace.end(span);
    },
    run: (work) => active.run(span, work),
    headers: () => ({ traceparent: traceparent(trace.id, span.id, trace.sampled) }),
  };
  return span;
}
