import { context, SpanStatusCode, trace, type Context, type Span as OtelSpan } from '@opentelemetry/api';
import type { Attributes, Span } from '../tracing.ts';
import { headersOf } from './propagation.ts';

function typeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return String(code ?? name ?? '_OTHER');
}

/** A class, and nothing made before it is needed: there are several to a request, and most are only begun and ended. */
export class TracedSpan implements Span {
  readonly #span: OtelSpan;
  readonly #parent: Context;
  #own: Context | undefined;

  constructor(span: OtelSpan, parent: Context) {
    this.#span = span;
    this.#parent = parent;
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  rename(name: string): void {
    if (this.#span.isRecording()) this.#span.updateName(name);
  }

  set(attributes: Attributes): void {
    if (this.#span.isRecording()) this.#span.setAttributes(attributes);
  }

  fail(error?: unknown): void {
    if (!this.#span.isRecording()) return;
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
    if (error !== undefined) this.#span.setAttribute('error.type', typeOf(error));
  }

  end(): void {
    if (this.#span.isRecording()) this.#span.end();
  }

  run<T>(work: () => T): T {
    return context.with(this.#context, work);
  }

  headers(): Record<string, string> {
    return headersOf(this.#context);
  }

  get #context(): Context {
    return (this.#own ??= trace.setSpan(this.#parent, this.#span));
  }
}
