import type { ClientRequest, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Request } from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import {
  beginSpan,
  createSlots,
  endRequestSpan,
  HttpError,
  unavailable,
  type Logger,
  type Release,
  type Span,
} from '@content-platform/chassis';
import type { GatewayResponse } from './exchange.ts';
import { createRequestHeaders, replyHeaders } from './forwarded-headers.ts';
import type { Instance, Instances } from './instances.ts';
import type { GatewayMetrics, UpstreamReason } from './metrics.ts';
import type { Refuse } from './reply.ts';
import type { Timeouts } from './timeouts.ts';
import { closeIdle, NotConnected } from './upstream-agent.ts';

export interface UpstreamOptions {
  publicUrl: string;
  timeouts: Timeouts;
  logger: Logger;
  metrics: GatewayMetrics;
  refuse: Refuse;
}

/** A request that is at the service. */
interface Attempt {
  instance: Instance;
  /** Another one could not be connected to. */
  moved: boolean;
  timer: NodeJS.Timeout;
  release: Release;
  span: Span | undefined;
  status?: number;
  timedOut: boolean;
  failed: boolean;
  left: boolean;
  /** The service's reply has begun. */
  answered: boolean;
  sent?: ClientRequest;
}

/** Sends a checked request to the service and its reply to the client. Throws 503 when there is no room. */
export type Upstream = (request: Request, response: GatewayResponse) => Promise<void>;

/** Requests that may be at one service at once, each on a connection of its own; more wait for one of them to end. */
export const maxRequests = 512;

/** What the client is told, by the reason. */
const refusals: Record<UpstreamReason, (cause: unknown) => HttpError> = {
  connect: (cause) => unavailable('The service cannot be reached at the moment.', cause),
  busy: (cause) => unavailable('The service has too much to do at the moment.', cause),
  timeout: (cause) =>
    new HttpError(504, 'gateway_timeout', 'The service did not answer in time.', undefined, { cause }),
  broken: (cause) => new HttpError(502, 'bad_gateway', 'The service broke off.', undefined, { cause }),
};

/** The way to the instances of the service at `url`, over http-proxy-middleware. */
export function createUpstream(
  service: string,
  url: URL,
  instances: Instances,
  options: UpstreamOptions,
): Upstream {
  const { timeouts, logger, metrics, refuse } = options;
  const requestHeaders = createRequestHeaders(url.host, options.publicUrl);
  const slots = createSlots(maxRequests);
  const attempts = new WeakMap<GatewayResponse, Attempt>();

  const proxy = createProxyMiddleware<Request, GatewayResponse>({
    // The one hook that sees the options of a single request: the body that was held or is counted takes its place.
    router(_request, response, own) {
      const { body, bodyStream } = response!.locals;
      if (bodyStream) own.buffer = bodyStream;
      else if (body?.length) own.buffer = Readable.from([body]);
      const { address, agent } = attempts.get(response!)!.instance;
      own.agent = agent;
      // Neither path nor query: the target goes on exactly as it was checked.
      return { protocol: url.protocol, hostname: address, port: url.port };
    },
    pathFilter: () => true,
    selfHandleResponse: true,
    // The usual ones parse addresses again for every log line, and answer errors in their own way.
    ejectPlugins: true,
    plugins: [
      (server) => {
        server.on('proxyReq', (sent, request, response) => watch(sent, request, response));
        server.on('proxyRes', (answer, request, response) => pass(answer, request, response));
        server.on('error', (error, request, response) => {
          if (request && response) fail(error, request, response as GatewayResponse);
        });
      },
    ],
  });

  function send(request: Request, response: GatewayResponse): void {
    void proxy(request, response, (error) => error && fail(error, request, response));
  }

  /** Not every end of a request is an error to Node: after a 101 that nobody asked for there is just a close. */
  function watch(sent: ClientRequest, request: Request, response: GatewayResponse): void {
    const attempt = attempts.get(response)!;
    attempt.sent = sent;
    sent.once('close', () => {
      if (attempt.sent !== sent) return;
      // The reply is here, whole; how long the client takes for it concerns the service no more.
      if (response.headersSent) return leave(attempt);
      fail(new Error('the connection was closed without a reply'), request, response);
    });
  }

  /** The reply as it comes. A reply that breaks off ends the client's connection: it must not look complete. */
  function pass(answer: IncomingMessage, request: Request, response: GatewayResponse): void {
    const attempt = attempts.get(response)!;
    const { timer } = attempt;
    attempt.answered = true;
    attempt.status = answer.statusCode!;
    const timing = answer.headers['server-timing'];
    if (typeof timing === 'string') response.locals.serverTiming = timing;
    answer.once('error', (error) => fail(error, request, response));
    try {
      response.writeHead(answer.statusCode!, replyHeaders(answer.headers, response.locals.endpoint));
    } catch (error) {
      answer.destroy();
      return fail(error, request, response);
    }
    timer.refresh();
    answer.on('data', () => timer.refresh());
    answer.pipe(response);
  }

  /**
   * A kept connection can be closed by the service just as we write to it. What was asked for with GET may be asked
   * again (RFC 9110 §9.2.2); for other methods nobody knows whether it was done.
   */
  function isStale(error: unknown, request: Request, attempt: Attempt): boolean {
    const { code } = error as NodeJS.ErrnoException;
    const broke = code === 'ECONNRESET' || code === 'EPIPE';
    return broke && request.method === 'GET' && attempt.sent?.reusedSocket === true;
  }

  function fail(error: unknown, request: Request, response: GatewayResponse): void {
    const attempt = attempts.get(response)!;
    // The client went away, or this failure has been told already.
    if (attempt.failed || response.destroyed || response.writableEnded) return;
    if (!response.headersSent && !attempt.timedOut && isStale(error, request, attempt)) {
      delete attempt.sent;
      // So the next one is new, unless another request gives one back just now.
      closeIdle(attempt.instance.agent);
      return send(request, response);
    }
    if (error instanceof NotConnected) {
      instances.cannotConnect(attempt.instance);
      if (moveOn(attempt, response)) return send(request, response);
    }
    attempt.failed = true;
    attempt.span?.fail(error);
    const reason = attempt.timedOut ? 'timeout' : error instanceof NotConnected ? 'connect' : 'broken';
    metrics.upstreamErrors.inc({ service, reason });
    if (!response.headersSent) return refuse(request, response, refusals[reason](error));
    const { requestId, span } = response.locals;
    const ids = { request_id: requestId, trace_id: span?.traceId };
    logger.warn({ ...ids, service, error }, 'a reply broke off');
    response.destroy();
  }

  /** Whoever could not be connected to has seen nothing of the request: another may have it, but for a body on its way. */
  function moveOn(attempt: Attempt, response: GatewayResponse): boolean {
    const other = instances.choose(attempt.instance);
    if (!other || attempt.moved || attempt.timedOut || response.locals.bodyStream) return false;
    attempt.instance.underWay -= 1;
    other.underWay += 1;
    Object.assign(attempt, { instance: other, moved: true });
    delete attempt.sent;
    return true;
  }

  /** A body on its way: the service's time begins when it has all of it, and what is wrong with it ends the attempt. */
  function follow(body: Readable, attempt: Attempt, request: Request, response: GatewayResponse): void {
    request.on('data', () => attempt.timer.refresh());
    body.once('error', (error) => {
      if (attempt.failed || attempt.answered) return;
      attempt.failed = true;
      attempt.sent?.destroy();
      refuse(request, response, error);
    });
  }

  function leave(attempt: Attempt): void {
    if (attempt.left) return;
    attempt.left = true;
    const { timer, release, span, status, instance } = attempt;
    instance.underWay -= 1;
    clearTimeout(timer);
    release();
    endRequestSpan(span, status);
  }

  function giveUp(attempt: Attempt, request: Request, response: GatewayResponse): void {
    // It is the client that takes nothing; the server's own limit is for that one.
    if (response.writableNeedDrain) return void attempt.timer.refresh();
    const { bodyStream } = response.locals;
    if (bodyStream && !request.complete) {
      return void bodyStream.destroy(
        new HttpError(408, 'request_timeout', 'The body does not come any more.'),
      );
    }
    attempt.timedOut = true;
    attempt.sent?.destroy();
    fail(new Error(`nothing came for ${timeouts.response} ms`), request, response);
  }

  async function waitForSlot(response: GatewayResponse): Promise<Release | undefined> {
    const waiting = new AbortController();
    const stop = () => waiting.abort(new Error(`${maxRequests} requests are at ${service}`));
    const timer = setTimeout(stop, timeouts.response);
    response.once('close', stop);
    try {
      return await slots.wait(waiting.signal);
    } catch (error) {
      if (response.destroyed) return undefined;
      metrics.upstreamErrors.inc({ service, reason: 'busy' });
      throw refusals.busy(error);
    } finally {
      clearTimeout(timer);
      response.off('close', stop);
    }
  }

  return async (request, response) => {
    // It went away while its token was checked: nothing would tell us of its end any more.
    if (response.destroyed) return;
    const release = slots.take() ?? (await waitForSlot(response));
    if (!release) return;
    const { endpoint, bodyStream } = response.locals;
    if (bodyStream?.errored) {
      release();
      throw bodyStream.errored;
    }
    const within = Math.max(timeouts.response, (endpoint?.replyWithinSeconds ?? 0) * 1_000);
    const instance = instances.choose();
    instance.underWay += 1;
    const attempt: Attempt = {
      instance,
      moved: false,
      left: false,
      timer: setTimeout(() => giveUp(attempt, request, response), within),
      release,
      span: beginSpan(`${request.method} ${service}`, { kind: 'client' }),
      timedOut: false,
      failed: false,
      answered: false,
    };
    attempts.set(response, attempt);
    response.once('close', () => leave(attempt));
    // The proxy listens anew each time that a request is sent again: after a service was killed that may be often.
    response.setMaxListeners(0);
    if (bodyStream) follow(bodyStream, attempt, request, response);
    request.headers = requestHeaders(request.headers, response.locals, attempt.span?.headers());
    send(request, response);
  };
}
