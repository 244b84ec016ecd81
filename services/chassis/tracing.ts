/** What is known of a piece of work, under OpenTelemetry's names where it has one. Never what a client sent. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** Headers of a request or an event, as they came, traceparent and tracestate perhaps among them (W3C Trace Context). */
export type TraceHeaders = Readonly<Record<string, unknown>>;

export interface SpanOptions {
  /** server: a request; consumer: an event; client: what is asked of another, only ever as a part of one of those. */
  kind: 'server' | 'consumer' | 'client';
  attributes?: Attributes | undefined;
  /** The trace of these goes on. */
  parent?: TraceHeaders | undefined;
  /** The trace of these is pointed to, and not joined: whoever sent them is not believed. */
  link?: TraceHeaders | undefined;
}

/** A piece of work in a trace. */
export interface Span {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The same, if it is certain that the trace is sent: what points to it leads somewhere. */
  readonly sentTraceId: string | undefined;
  rename(name: string): void;
  set(attributes: Attributes): void;
  /** It failed: of the reason only its kind is kept, for a message may quote a secret. */
  fail(error?: unknown): void;
  /** The trace is sent, whatever else happens. */
  keep(): void;
  end(): void;
  /** What begins while `work` is under way belongs to this. */
  run<T>(work: () => T): T;
  /** What another process has to be sent, so that its part belongs to this. */
  headers(): Record<string, string>;
}

/** What stands behind all of this in a process that is traced. */
export interface Tracer {
  begin(name: string, options: SpanOptions): Span | undefined;
  active(): Span | undefined;
  outside<T>(work: () => T): T;
  /** Sends what is left; takes a second at most. */
  close(): Promise<void>;
}

let tracer: Tracer | undefined;

/** For the preload alone: until it says so nothing is traced, and OpenTelemetry's SDK not loaded. */
export function useTracer(given: Tracer): void {
  tracer = given;
}

export const isTraced = (): boolean => tracer !== undefined;

/** Undefined where nothing is traced, and for a client's span that would be a part of nothing. */
export function beginSpan(name: string, options: SpanOptions): Span | undefined {
  return tracer?.begin(name, options);
}

/** Runs `work` as a part of `span`, if there is one. */
export function inSpan<T>(span: Span | undefined, work: () => T): T {
  return span ? span.run(work) : work();
}

/** Runs `work`, which asks something of another, as a span of its own: the other may have to be sent its headers. */
export async function traced<T>(
  name: string,
  attributes: Attributes,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> {
  const span = beginSpan(name, { kind: 'client', attributes });
  if (!span) return work(undefined);
  try {
    return await work(span);
  } catch (error) {
    span.fail(error);
    throw error;
  } finally {
    span.end();
  }
}

/** Begins the span of a request; `route`: its template; `headers`: what it came with, a trace of ours perhaps. */
export function beginRequestSpan(method: string, route: string, headers: TraceHeaders): Span | undefined {
  return beginSpan(`${method} ${route}`, {
    kind: 'server',
    parent: headers,
    attributes: { 'http.request.method': method, 'http.route': route },
  });
}

/** Ends the span of a request that was answered with `status`, if it was answered. */
export function endRequestSpan(span: Span | undefined, status: number | undefined): void {
  span?.set({ 'http.response.status_code': status });
  if (status !== undefined && status >= 500) span?.fail();
  span?.end();
}

/** What the work under way belongs to. */
export function activeSpan(): Span | undefined {
  return tracer?.active();
}

/** For what does not belong to the trace, though it was set up in one. */
export function outsideTrace<T>(work: () => T): T {
  return tracer ? tracer.outside(work) : work();
}

export async function closeTracer(): Promise<void> {
  await tracer?.close();
}
