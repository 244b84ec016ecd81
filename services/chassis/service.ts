import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { pipeline, type Readable } from 'node:stream';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import type { Body, Endpoint, Params, Query, Reply, ServiceName } from '@content-platform/contract';
import { createBodyParser, endAfterBody, validate } from './request-input.ts';
import {
  requestId,
  runInContext,
  type RequestContext,
  beginRequestSpan,
  endRequestSpan,
  inSpan,
} from './context.ts';
import { envelope, HttpError, methodNotAllowed, toHttpError } from './http-error.ts';
import type { Logger } from './logger.ts';
import { methodLabel, observe, statusOf, type Metrics } from './metrics.ts';
import { authorize, bearerToken, type Caller, type TokenVerifier } from './tokens.ts';

type CallerOf<E extends Endpoint> = E['access'] extends 'public'
  ? undefined
  : E['access'] extends 'user'
    ? Extract<Caller, { kind: 'user' }>
    : Caller;

type BodyOf<E extends Endpoint> = E['body'] extends { kinds: readonly ['multipart'] }
  ? IncomingMessage
  : Body<E>;

/** A request that has passed every check of the contract. */
export interface Call<E extends Endpoint> {
  params: Params<E>;
  query: Query<E>;
  body: BodyOf<E>;
  caller: CallerOf<E>;
  header(name: string): string | undefined;
  /** The client's IP address, from the gateway. */
  address: string;
  /** Returns a signal that aborts when the client disconnects, and when the reply was sent. */
  signal(): AbortSignal;
}

export type Handler<E extends Endpoint> = (call: Call<E>) => Promise<Reply<E>> | Reply<E>;

/** Throws if the endpoint is not available in this installation: 404, or 501. `params` are not validated yet. */
export type Gate = (params: Readonly<Record<string, string>>) => void;

export interface Route {
  endpoint: Endpoint;
  handler: (call: never) => unknown;
  gate: Gate | undefined;
  parseBody: ReturnType<typeof createBodyParser>;
}

/** Pairs an endpoint of the contract with its handler and, optionally, its gate. */
export function handle<E extends Endpoint>(endpoint: E, handler: Handler<E>, gate?: Gate): Route {
  return { endpoint, handler, gate, parseBody: createBodyParser(endpoint) };
}

export interface ServiceOptions {
  name: ServiceName;
  logger: Logger;
  metrics: Metrics;
  tokens: TokenVerifier;
}

/** Returns the methods of the endpoint, for gateway and services. GET includes HEAD (RFC 9110 §9.1). */
export function requestMethods({ method, noHead }: Endpoint): string[] {
  return method === 'GET' && !noHead ? ['GET', 'HEAD'] : [method];
}

/** Compares path templates to sort them: a fixed segment precedes a parameter, `/jobs/retry` before `/jobs/:id`. */
export function comparePaths(a: string, b: string): number {
  // A space sorts before every other character. Descending, because express tries one path after the other, and most
  // requests are for /api/content, few for /api/admin.
  const [first, second] = [a, b].map((path) => path.replaceAll('/:', '/ ')) as [string, string];
  return first < second ? 1 : first > second ? -1 : 0;
}

/** Abort reason of every call's signal; shared, because creating an Error each time would cost more than most handlers. */
const requestEnded = Object.assign(new Error('the request has ended'), { name: 'AbortError' });

function abortOnClose(response: Response): AbortController {
  const controller = new AbortController();
  if (response.destroyed) controller.abort(requestEnded);
  else response.once('close', () => controller.abort(requestEnded));
  return controller;
}

/** A reply of any endpoint. `body`: a value to send as JSON, a string that is JSON already, or a stream. */
export interface AnyReply {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

/**
 * Creates a service's public application, which checks each request against the contract. The order is 404/405, 401,
 * 403, 501 (or the gate's error), 413/415, 400/422, handler.
 */
export function createService(
  { name, logger, metrics, tokens }: ServiceOptions,
  routes: readonly Route[],
): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  metrics.createSeries(routes.map((route) => route.endpoint));

  async function callHandler(
    { endpoint, handler, gate, parseBody }: Route,
    request: Request,
    response: Response,
  ): Promise<AnyReply> {
    let caller: Caller | undefined;
    if (endpoint.access !== 'public') {
      caller = await tokens.verify(bearerToken(request.headers.authorization));
      authorize(caller, endpoint);
    }
    gate?.(request.params as Record<string, string>);
    await parseBody(request, response);
    const input = validate(endpoint, request);
    // RFC 9110 §14.2: Range is defined for GET alone.
    if (request.method === 'HEAD') delete request.headers.range;
    let controller: AbortController | undefined;
    const call = {
      ...input,
      caller,
      header: (header: string) => request.get(header),
      address: clientAddress(request),
      // Created when it is needed: it would cost 3 % of a cached read.
      signal: () => (controller ??= abortOnClose(response)).signal,
    };
    return (await handler(call as never)) as AnyReply;
  }

  function logFailure({ cause, error, message }: HttpError, route: string, isDisconnected: boolean): void {
    // A deliberate refusal, such as `overloaded`, has no cause, and its stack has no information.
    if (cause === undefined) {
      return logger.warn({ route, code: error, reason: message }, 'request refused');
    }
    // If the client disconnected, this is not our failure.
    logger[isDisconnected ? 'debug' : 'error']({ error: cause, route }, 'request failed');
  }

  /** Runs `work` in the request's context and sends the reply that it returns or throws. */
  async function respond(request: Request, response: Response, route: string, work: () => Promise<AnyReply>) {
    const context: RequestContext = {
      requestId: requestId(request.get('x-request-id')),
      route,
      database: { calls: 0, ms: 0 },
    };
    const start = performance.now();
    const method = methodLabel(request.method);
    const span = beginRequestSpan(method, route, request.headers);
    response.once('close', () => {
      const status = statusOf(response);
      const labels = { service: name, method, route, status: String(status) };
      endRequestSpan(span, status);
      observe(metrics.requestDuration, labels, (performance.now() - start) / 1000, span?.sentTraceId);
    });
    function logCut(error: unknown): void {
      // If the client disconnected, this is not our failure.
      if (response.destroyed) return;
      const fields = { request_id: context.requestId, error, route };
      logger.error(fields, 'request failed; the client got an incomplete reply');
    }
    const answer = async () => {
      const reply = await work().catch((thrown: unknown): AnyReply => {
        const error = toHttpError(thrown);
        if (error.status >= 500) logFailure(error, route, response.destroyed);
        return { status: error.status, body: envelope(error, context.requestId), headers: error.headers };
      });
      if (isStream(reply.body)) reply.body.once('error', logCut);
      send(request, response, reply, context);
    };
    await runInContext(context, () => inSpan(span, answer));
  }

  const groups = [...Map.groupBy(routes, ({ endpoint }) => endpoint.path)];
  for (const [path, group] of groups.toSorted(([a], [b]) => comparePaths(a, b))) {
    const methods = new Map(
      group.flatMap((route) => requestMethods(route.endpoint).map((method) => [method, route])),
    );
    app.all(path, (request, response) =>
      respond(request, response, path, async () => {
        const route = methods.get(request.method);
        if (route) return callHandler(route, request, response);
        throw methodNotAllowed(request.method, methods.keys());
      }),
    );
  }
  app.use(() => {
    throw new HttpError('not_found', 'The path was not found.');
  });
  // Also called if the path cannot be decoded: then express throws before it finds a route.
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) =>
    respond(request, response, 'unknown', () => Promise.reject(error as Error)),
  );
  return app;
}

/** Trusts X-Forwarded-For: only the gateway's network reaches a service, and the gateway replaces a client's header. */
function clientAddress(request: Request): string {
  const forwarded = request.get('x-forwarded-for') ?? '';
  const address = isIP(forwarded) ? forwarded : (request.socket.remoteAddress ?? '');
  // Removes the zone of a link-local address, which has a meaning on this machine only.
  return address.replace(/%.*$/, '');
}

/** Time in which a refused body is read and discarded. */
const drainMs = 5_000;

function send(request: Request, response: Response, reply: AnyReply, context: RequestContext): void {
  const { body } = reply;
  if (response.destroyed) {
    if (isStream(body)) body.destroy();
    return;
  }
  const { calls, ms } = context.database;
  const cache = context.cache ? `, cache;desc="${context.cache}"` : '';
  const headers: Record<string, string> = {
    'Cache-Control': 'no-store',
    'X-Request-Id': context.requestId,
    'Server-Timing': `db;dur=${ms.toFixed(1)};desc="${calls}"${cache}`,
    ...reply.headers,
  };
  if (isStream(body)) {
    response.status(reply.status).set(headers);
    // If the body fails, pipeline() closes the connection, so that a cut-off file does not look complete.
    if (request.method !== 'HEAD') return void pipeline(body, response, () => undefined);
    // Closes the file or connection that the handler opened for GET.
    body.destroy();
    return void response.end();
  }
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  if (text !== undefined) headers['Content-Type'] = 'application/json; charset=utf-8';
  const hasContent = reply.status !== 204 && reply.status !== 304;
  if (hasContent) headers['Content-Length'] = String(Buffer.byteLength(text ?? ''));
  if (request.complete) return void response.writeHead(reply.status, headers).end(text);
  headers['Connection'] = 'close';
  response.writeHead(reply.status, headers).write(text ?? '');
  endAfterBody(request, response, drainMs);
}

function isStream(body: unknown): body is Readable {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}
