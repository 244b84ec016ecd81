import type { AsyncLocalStorage } from 'node:async_hooks';
import type { Attributes, Span, SpanOptions } from '../tracing.ts';
import type { LocalTrace } from './local-trace.ts';
import { traceparent } from './traceparent.ts';

export interface SpanStart {
  id: string;
  parentId?: string | undefined;
  name: string;
  options: SpanOptions;
  trace: LocalTrace;
  active: AsyncLocalStorage<RecordedSpan>;
}

function typeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return String(code ?? name ?? '_OTHER');
}

/** A span as it is noted while work is under way. */
export class RecordedSpan implements Span {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly options: SpanOptions;
  readonly trace: LocalTrace;
  readonly beganAt = performance.now();
  name: string;
  attributes: Attributes;
  failed = false;
  /** Undefined as long as it has not ended. */
  endedAt: number | undefined;
  readonly #active: AsyncLocalStorage<RecordedSpan>;

  constructor({ id, parentId, name, options, trace, active }: SpanStart) {
    this.id = id;
    this.parentId = parentId;
    this.name = name;
    this.options = options;
    this.attributes = options.attributes ?? {};
    this.trace = trace;
    this.#active = active;
  }

  get traceId(): string {
    return this.trace.id;
  }

  get sentTraceId(): string | undefined {
    return this.trace.wanted ? this.trace.id : undefined;
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

  keep(): void {
    this.trace.want();
  }

  end(): void {
    if (this.endedAt !== undefined) return;
    this.endedAt = performance.now();
    if (this.options.kind === 'client') this.trace.add(this);
    else this.trace.end(this);
  }

  run<T>(work: () => T): T {
    return this.#active.run(this, work);
  }

  headers(): Record<string, string> {
    return { traceparent: traceparent(this.traceId, this.id, this.trace.sampled) };
  }
}
