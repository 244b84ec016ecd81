import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { pipeline, type Readable } from 'node:stream';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import type { Body, Endpoint, Params, Query, Reply, ServiceName } from '@content-platform/contract';
import { parseBody } from './body.ts';
import { runInContext, type RequestContext } from './context.ts';
import { endAfterBody } from './drain.ts';
import { envelope, HttpError, toHttpError } from './http-error.ts';
import type { Logger } from './logger.ts';
import { methodLabel, observe, type Metrics } from './metrics.ts';
import { comparePaths } from './path-order.ts';
import { requestId } from './request-id.ts';
import { beginRequestSpan, endRequestSpan, inSpan } from './tracing.ts';
import { authorize, bearerToken, type Caller, type TokenVerifier } from './tokens.ts';
import { validate } from './validation.ts';

type CallerOf<E extends Endpoint> = E['access'] extends 'public'
  ? undefined
  : E['access'] extends 'user'
    ? Extract<Caller, { kind: 'user' }>
    : Caller;

/** Multipart bodies are streams of their handlers. */
type BodyOf<E extends Endpoint> = E['body'] extends { kinds: readonly ['multipart'] }
  ? IncomingMessage
  : Body<E>;

/** A request that has passed every check of the contract, as a handler sees it. */
export interface Call<E extends Endpoint> {
  params: Params<E>;
  query: Query<E>;
  body: BodyOf<E>;
  caller: CallerOf<E>;
  header(name: string): string | undefined;
  /** The client's address, as the gateway tells it. */
  address: string;
  /** Aborted when the client hangs up. */
  signal: AbortSignal;
}

export type Handler<E extends Endpoint> = (call: Call<E>) => Promise<Reply<E>> | Reply<E>;

/**
 * Throws when the endpoint is not to be had here: 404, or 501 where the feature is switched off. It sees the path's
 * parameters as they came.
 */
export type Gate = (params: Readonly<Record<string, string>>) => void;

export interface Route {
  endpoint: Endpoint;
  handler: (call: never) => unknown;
  gate: Gate | undefined;
}

/** Pairs an endpoint of the contract with what answers it, and with what says before that whether it is there at all. */
export function handle<E extends Endpoint>(endpoint: E, handler: Handler<E>, gate?: Gate): Route {
  return { endpoint, handler, gate };
}

export interface ServiceOptions {
  name: ServiceName;
  logger: Logger;
  metrics: Metrics;
  tokens: TokenVerifier;
}

/** Why calls end early: one for all, as making a reason for each would cost more than most handlers. */
const over = Object.assign(new Error('the request is over'), { name: 'AbortError' });

interface AnyReply {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

/**
 * A service's public side: each request is checked against the contract and answered by its handler. The order is
 * 404/405, 401, 403, 501 (or what the route's gate says), 413/415, 400/422, handler.
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
  metrics.expect(routes.map((route) => route.endpoint));

  async function callHandler(
    { endpoint, handler, gate }: Route,
    request: Request,
    response: Response,
  ): Promise<AnyReply> {
    let caller: Caller | undefined;
    if (endpoint.access !== 'public') {
      caller = await tokens.verify(bearerToken(request.headers.authorization));
      authorize(caller, endpoint);
    }
    gate?.(request.params as Record<string, string>);
    await parseBody(request, response, endpoint);
    const input = validate(endpoint, request);
    const hangUp = new AbortController();
    response.once('close', () => hangUp.abort(over));
    const call = {
      ...input,
      caller,
      header: (header: string) => request.get(header),
      address: clientAddress(request),
      signal: hangUp.signal,
    };
    return (await handler(call as never)) as AnyReply;
  }

  function logFailure({ cause, error, message }: HttpError, route: string, hungUp: boolean): void {
    // What we say on purpose, such as that there is too much to do, has no cause: where it was said tells nothing.
    if (cause === undefined) {
      return logger.warn({ route, code: error, reason: message }, 'a request was refused');
    }
    // Who has hung up has ended our work.
    logger[hungUp ? 'debug' : 'error']({ error: cause, route }, 'a request failed');
  }

  /** Runs `work` as the request's context and answers with what it returns or throws. */
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
      const labels = { service: name, method, route, status: String(response.statusCode) };
      endRequestSpan(span, response.statusCode);
      observe(metrics.requestDuration, labels, (performance.now() - start) / 1000, span?.sentTraceId);
    });
    const answer = async () => {
      const reply = await work().catch((thrown: unknown): AnyReply => {
        const error = toHttpError(thrown);
        if (error.status >= 500) logFailure(error, route, response.destroyed);
        return { status: error.status, body: envelope(error, context.requestId), headers: error.headers };
      });
      send(request, response, reply, context);
    };
    await runInContext(context, () => inSpan(span, answer));
  }

  const groups = [...Map.groupBy(routes, ({ endpoint }) => endpoint.path)];
  for (const [path, group] of groups.toSorted(([a], [b]) => comparePaths(a, b))) {
    const methods = new Map(group.map((route) => [route.endpoint.method as string, route]));
    app.all(path, (request, response) =>
      respond(request, response, path, async () => {
        const route = methods.get(request.method);
        if (route) return callHandler(route, request, response);
        throw new HttpError(405, 'method_not_allowed', `${request.method} is not possible here.`, undefined, {
          headers: { Allow: [...methods.keys()].join(', ') },
        });
      }),
    );
  }
  app.use((request, response) =>
    respond(request, response, 'unknown', () => {
      throw new HttpError(404, 'not_found', 'There is nothing at this path.');
    }),
  );
  // What express throws before a route is found: a path that cannot be decoded.
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) =>
    respond(request, response, 'unknown', () => Promise.reject(error as Error)),
  );
  return app;
}

/** Only the gateway and what runs beside it reach a service, and the gateway replaces what a client says. */
function clientAddress(request: Request): string {
  const told = request.get('x-forwarded-for') ?? '';
  const address = isIP(told) ? told : (request.socket.remoteAddress ?? '');
  // The zone of a link-local address means something on this machine only.
  return address.replace(/%.*$/, '');
}

/** A body that was refused may still be coming: for so long we listen. */
const drainMs = 5_000;

function send(request: Request, response: Response, reply: AnyReply, context: RequestContext): void {
  const { body } = reply;
  if (response.destroyed) {
    // Nobody will read the file that was opened.
    if (isStream(body)) body.destroy();
    return;
  }
  const { calls, ms } = context.database;
  const cache = context.cache ? `, cache;desc="${context.cache}"` : '';
  response.status(reply.status).set({
    'Cache-Control': 'no-store',
    'X-Request-Id': context.requestId,
    'Server-Timing': `db;dur=${ms.toFixed(1)};desc="${calls}"${cache}`,
    ...reply.headers,
  });
  // What breaks off in the middle must not look whole: the connection ends.
  if (isStream(body)) return void pipeline(body, response, () => undefined);
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  if (text !== undefined) response.type('json').set('Content-Length', String(Buffer.byteLength(text)));
  if (request.complete) return void response.end(text);
  response.set('Connection', 'close').write(text ?? '');
  endAfterBody(request, response, drainMs);
}

function isStream(body: unknown): body is Readable {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}
