import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { Server, ServerResponse } from 'node:http';

/** The current request, for logs and measurements in the layers below. */
export interface RequestContext {
  requestId: string;
  route: string;
  /** Number of database calls so far, and their total time in ms. */
  database: { calls: number; ms: number };
  /** hit, miss or bypass, once known. */
  cache?: string;
}

const storage = new AsyncLocalStorage<RequestContext>();

export const runInContext = <T>(context: RequestContext, work: () => T): T => storage.run(context, work);

/** Runs work that a request starts but that does not belong to the request and its trace. */
export function outsideContext<T>(work: () => T): T {
  return storage.exit(() => (tracer ? tracer.outside(work) : work()));
}

/** Returns undefined outside a request: at start, in a consumer. A timer has the context in which it was set. */
export const currentContext = (): RequestContext | undefined => storage.getStore();

const acceptableId = /^[A-Za-z0-9._-]{1,128}$/;

/** Returns the client's X-Request-Id if it is 1 to 128 characters of [A-Za-z0-9._-], otherwise a new id. */
export function requestId(given: string | undefined): string {
  return given !== undefined && acceptableId.test(given) ? given : randomUUID();
}

const unfinished = new WeakMap<Server, ServerResponse[]>();

/** Moves the shorter part: under overload a thousand replies wait behind one that ends, and splice() took 7 µs. */
function remove(replies: ServerResponse[], response: ServerResponse): void {
  const index = replies.indexOf(response);
  if (index * 2 > replies.length) return void replies.splice(index, 1);
  for (let at = index; at > 0; at -= 1) replies[at] = replies[at - 1]!;
  replies.shift();
}

/** Returns the unfinished replies of `server`, the oldest first. The first call must precede its first request. */
export function repliesOf(server: Server): readonly ServerResponse[] {
  const known = unfinished.get(server);
  if (known) return known;
  // Not a Set: V8 replaces its table every few additions, and old tables keep finished replies until a full collection.
  const replies: ServerResponse[] = [];
  unfinished.set(server, replies);
  server.prependListener('request', (_request, response) => {
    replies.push(response);
    response.once('close', () => remove(replies, response));
  });
  return replies;
}

/** Attributes of a span, with OpenTelemetry's names where they exist. Never values of a client, except X-Request-Id. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** Headers of a request or an event, perhaps with traceparent (W3C Trace Context). */
export type TraceHeaders = Readonly<Record<string, unknown>>;

export interface SpanOptions {
  /** server: a request; consumer: an event; client: a call of another process or store within one of those. */
  kind: 'server' | 'consumer' | 'client';
  attributes?: Attributes | undefined;
  /** Continues the trace of these headers. */
  parent?: TraceHeaders | undefined;
  /** Links to the trace of these headers without joining it, because their sender is not trusted. */
  link?: TraceHeaders | undefined;
  /** performance.now() when the request arrived, if it waited before; default: now. */
  beganAt?: number;
}

export interface Span {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The trace id if the trace is certain to be sent, for references to the trace. */
  readonly sentTraceId: string | undefined;
  rename(name: string): void;
  set(attributes: Attributes): void;
  /** Marks the span as failed. Only the type of `error` is recorded, because its message may quote a secret. */
  fail(error?: unknown): void;
  /** Sends the trace regardless of the sampling decision. */
  forceSampling(): void;
  end(): void;
  /** Runs `work`; spans that begin in it are children of this span. */
  run<T>(work: () => T): T;
  /** Headers to send to another process, so that its span is a child of this span. */
  headers(): Record<string, string>;
}

/** The implementation in a process that is traced. */
export interface Tracer {
  begin(name: string, options: SpanOptions): Span | undefined;
  active(): Span | undefined;
  outside<T>(work: () => T): T;
  /** Sends the remaining spans; takes at most a second. */
  close(): Promise<void>;
}

let tracer: Tracer | undefined;

/** Turns tracing on. Only the preload calls it; otherwise OpenTelemetry's SDK is not loaded. */
export function setTracer(given: Tracer): void {
  tracer = given;
}

export const isTraced = (): boolean => tracer !== undefined;

/** Begins a span. Undefined if the process is not traced, and for a client span outside a trace. */
export const beginSpan = (name: string, options: SpanOptions): Span | undefined =>
  tracer?.begin(name, options);

export const inSpan = <T>(span: Span | undefined, work: () => T): T => (span ? span.run(work) : work());

/** Runs `work`, a call of another process or store, in a client span. */
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

/** Begins the span of a request. `route`: its path template; `headers`: may continue a trace of the platform. */
export function beginRequestSpan(method: string, route: string, headers: TraceHeaders): Span | undefined {
  return beginSpan(`${method} ${route}`, {
    kind: 'server',
    parent: headers,
    attributes: { 'http.request.method': method, 'http.route': route },
  });
}

/** Ends the span of a request with its reply's `status`; undefined: no reply was sent. */
export function endRequestSpan(span: Span | undefined, status: number | undefined): void {
  span?.set({ 'http.response.status_code': status });
  if (status !== undefined && status >= 500) span?.fail();
  span?.end();
}

export const activeSpan = (): Span | undefined => tracer?.active();

export const closeTracer = async (): Promise<void> => tracer?.close();
