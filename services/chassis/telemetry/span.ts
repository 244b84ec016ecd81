import type { AsyncLocalStorage } from 'node:async_hooks';
import { RandomIdGenerator } from '@opentelemetry/sdk-trace';
import type { Attributes, Span, SpanOptions } from '../tracing.ts';
import type { LocalTrace } from './local-trace.ts';
import { traceparent } from './traceparent.ts';

export interface SpanStart {
  /** A span of this process, or the id of another's. */
  parent: RecordedSpan | string | undefined;
  name: string;
  options: SpanOptions;
  trace: LocalTrace;
  active: AsyncLocalStorage<RecordedSpan>;
}

function typeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return String(code ?? name ?? '_OTHER');
}

const ids = new RandomIdGenerator();

/** A span as it is noted while work is under way. What only a span that is sent has is made when it is asked for. */
export class RecordedSpan implements Span {
  readonly options: SpanOptions;
  readonly trace: LocalTrace;
  readonly beganAt = performance.now();
  name: string;
  failed = false;
  /** Undefined as long as it has not ended. */
  endedAt: number | undefined;
  readonly #active: AsyncLocalStorage<RecordedSpan>;
  readonly #parent: RecordedSpan | string | undefined;
  #id: string | undefined;
  #attributes: Attributes[] = [];

  constructor({ parent, name, options, trace, active }: SpanStart) {
    this.#parent = parent;
    this.name = name;
    this.options = options;
    this.trace = trace;
    this.#active = active;
  }

  get id(): string {
    return (this.#id ??= ids.generateSpanId());
  }

  get parentId(): string | undefined {
    return typeof this.#parent === 'object' ? this.#parent.id : this.#parent;
  }

  get attributes(): Attributes {
    return Object.assign({}, this.options.attributes, ...this.#attributes) as Attributes;
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
    this.#attributes.push(attributes);
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
