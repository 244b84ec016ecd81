import { AsyncLocalStorage } from 'node:async_hooks';
import { TraceFlags, type SpanContext } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import { RandomIdGenerator } from '@opentelemetry/sdk-trace';
import type { Attributes, Span, SpanOptions, TraceHeaders, Tracer } from '../context.ts';
import { withTimeout } from '../concurrency.ts';

/** A trace that is longer in this process is sent, too: the whole request may exceed the slow limit of 500 ms. */
const longMs = 200;
/** Spans held of one request or event; further ones are dropped. */
const maxSpans = 1_000;
/** Limit for sending during the shutdown, in case the collector hangs. */
const closeTimeoutMs = 1_000;

interface TracerOptions {
  /** Part of the requests that are neither slow nor failed whose traces are sent, 0 to 1. */
  ratio: number;
  send(span: RecordedSpan): void;
  shutdown(): Promise<void>;
}

/** This process's part of a trace: when its request or event ends, either all of its spans are sent or none. */
interface LocalTrace {
  readonly id: string;
  /** Sampling decision of the process where the trace began; it applies to all processes. */
  readonly sampled: boolean;
  readonly beganAt: number;
  /** Difference between the process's monotonic clock and Unix time, in ms. */
  readonly epochMs: number;
  readonly send: TracerOptions['send'];
  /** Whether the trace is sent: it was sampled, failed, took longer than `longMs` or got forceSampling(). */
  wanted: boolean;
  ended: boolean;
  readonly spans: RecordedSpan[];
}

const active = new AsyncLocalStorage<RecordedSpan>();
const ids = new RandomIdGenerator();

const isLong = (trace: LocalTrace): boolean => performance.now() - trace.beganAt > longMs;

function typeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return String(code ?? name ?? '_OTHER');
}

/** A span of this process, or the id of a span of another process. */
type Parent = RecordedSpan | string | undefined;

/** A class, because creating spans with closures took several times as long. */
export class RecordedSpan implements Span {
  readonly trace: LocalTrace;
  readonly parent: Parent;
  readonly options: SpanOptions;
  readonly beganAt: number;
  endedAt: number | undefined = undefined;
  name: string;
  attributes: Attributes;
  failed = false;
  #id: string | undefined = undefined;

  constructor(trace: LocalTrace, parent: Parent, name: string, options: SpanOptions) {
    this.beganAt = options.beganAt ?? performance.now();
    this.trace = trace;
    this.parent = parent;
    this.name = name;
    this.options = options;
    this.attributes = options.attributes ?? {};
  }

  /** Only spans that are sent or called another process need an id. */
  get id(): string {
    return (this.#id ??= ids.generateSpanId());
  }
  get parentId(): string | undefined {
    return typeof this.parent === 'object' ? this.parent.id : this.parent;
  }
  get traceId(): string {
    return this.trace.id;
  }
  get sentTraceId(): string | undefined {
    const { wanted, ended, id } = this.trace;
    return wanted || (!ended && isLong(this.trace)) ? id : undefined;
  }
  rename(name: string): void {
    this.name = name;
  }
  set(attributes: Attributes): void {
    this.attributes = { ...this.attributes, ...attributes };
  }
  fail(error?: unknown): void {
    this.failed = true;
    if (error !== undefined) this.set({ 'error.type': typeOf(error) });
  }
  forceSampling(): void {
    this.trace.wanted = true;
  }
  run<T>(work: () => T): T {
    return active.run(this, work);
  }
  headers(): Record<string, string> {
    return { traceparent: `00-${this.traceId}-${this.id}-${this.trace.sampled ? '01' : '00'}` };
  }
  end(): void {
    if (this.endedAt !== undefined) return;
    this.endedAt = performance.now();
    const { trace } = this;
    if (this.options.kind === 'client') {
      // If a span ends after its request, it is sent if the trace of the request was sent.
      if (!trace.ended && trace.spans.length < maxSpans) trace.spans.push(this);
      if (trace.ended && trace.wanted) trace.send(this);
      return;
    }
    trace.ended = true;
    trace.wanted ||= this.failed || isLong(trace);
    const spans = trace.spans.splice(0);
    if (trace.wanted) [...spans, this].forEach(trace.send);
  }
}

/** Returns the span that `traceparent` names (W3C Trace Context); undefined without a well-formed header. */
export function remoteSpanOf(headers: TraceHeaders | undefined): SpanContext | undefined {
  const given = headers?.['traceparent'];
  // kafkajs passes values as bytes, and several values of one name as a list.
  const value: unknown = Array.isArray(given) ? given[0] : given;
  if (typeof value !== 'string' && !Buffer.isBuffer(value)) return undefined;
  return parseTraceParent(value.toString()) ?? undefined;
}

/** Records spans, and sends those of slow and failed requests and events, and of `ratio` of the others. */
export function createTracer({ ratio, send, shutdown }: TracerOptions): Tracer {
  function beginTrace(remote: SpanContext | undefined): LocalTrace {
    const sampled = remote ? (remote.traceFlags & TraceFlags.SAMPLED) !== 0 : Math.random() < ratio;
    const beganAt = performance.now();
    return {
      id: remote?.traceId ?? ids.generateTraceId(),
      sampled,
      beganAt,
      epochMs: Date.now() - beganAt,
      send,
      wanted: sampled,
      ended: false,
      spans: [],
    };
  }

  return {
    begin(name, options) {
      if (options.kind === 'client') {
        const parent = active.getStore();
        return parent && new RecordedSpan(parent.trace, parent, name, options);
      }
      const remote = remoteSpanOf(options.parent);
      return new RecordedSpan(beginTrace(remote), remote?.spanId, name, options);
    },
    active: () => active.getStore(),
    outside: (work) => active.exit(work),
    close: () => withTimeout(shutdown(), closeTimeoutMs).catch(() => undefined),
  };
}
