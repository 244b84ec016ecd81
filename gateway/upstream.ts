import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { Request } from 'express';
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
import { NotConnected } from './connect.ts';
import type { GatewayResponse } from './exchange.ts';
import { createRequestHeaders, replyHeaders } from './forwarded-headers.ts';
import type { Instance, Instances } from './instances.ts';
import type { GatewayMetrics, UpstreamReason } from './metrics.ts';
import type { Refuse } from './reply.ts';
import { sendMessage } from './send-message.ts';
import { createSendStream } from './send-stream.ts';
import type { Sending } from './sending.ts';
import type { Timeouts } from './timeouts.ts';

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
  headers: IncomingHttpHeaders;
  sending?: Sending;
  /** Another one could not be connected to. */
  moved: boolean;
  timer: NodeJS.Timeout;
  release: Release;
  span: Span | undefined;
  status?: number;
  timedOut: boolean;
  failed: boolean;
  left: boolean;
}

/** Sends a checked request to the service and its reply to the client. Throws 503 when there is no room. */
export type Upstream = (request: Request, response: GatewayResponse) => Promise<void>;

/** Requests that may be at one service at once, each on a connection of its own; more wait for one of them to end. */
export const maxRequests = 512;

/** So many wait for their turn at most, about as long as those that are there take; more would wait for nothing. */
const maxWaiting = 512;

/** What the client is told, by the reason. */
const refusals: Record<UpstreamReason, (cause: unknown) => HttpError> = {
  connect: (cause) => unavailable('The service cannot be reached at the moment.', cause),
  busy: (cause) => unavailable('The service has too much to do at the moment.', cause),
  timeout: (cause) =>
    new HttpError(504, 'gateway_timeout', 'The service did not answer in time.', undefined, { cause }),
  broken: (cause) => new HttpError(502, 'bad_gateway', 'The service broke off.', undefined, { cause }),
};

/**
 * Our services name the request in whatever they answer. An error that does not is that of something else at their
 * address, and not in our form.
 */
const isForeign = (status: number, headers: IncomingHttpHeaders): boolean =>
  status >= 500 && headers['x-request-id'] === undefined;

/** The way to the instances of the service at `url`. */
export function createUpstream(
  service: string,
  url: URL,
  instances: Instances,
  options: UpstreamOptions,
): Upstream {
  const { timeouts, logger, metrics, refuse } = options;
  const requestHeaders = createRequestHeaders(url.host, options.publicUrl);
  const sendStream = createSendStream(url, timeouts.drain);
  const slots = createSlots(maxRequests, maxWaiting);

  function send(attempt: Attempt, request: Request, response: GatewayResponse): void {
    const { instance, headers } = attempt;
    const way = response.locals.bodyStream ? sendStream : sendMessage;
    attempt.sending = way(request, headers, response, instance, {
      head: (status, replied) => pass(attempt, status, replied, request, response),
      piece: () => attempt.timer.refresh(),
      end: () => leave(attempt),
      fail: (error) => fail(attempt, error, request, response),
    });
  }

  /** The head of the reply as it came. */
  function pass(
    attempt: Attempt,
    status: number,
    headers: IncomingHttpHeaders,
    request: Request,
    response: GatewayResponse,
  ): boolean {
    attempt.status = status;
    const timing = headers['server-timing'];
    if (typeof timing === 'string') response.locals.serverTiming = timing;
    if (isForeign(status, headers)) {
      fail(attempt, new Error(`a ${status} that is not the service's`), request, response);
      return false;
    }
    try {
      const passed = replyHeaders(headers, response.locals.endpoint);
      if (!request.complete) passed.connection = 'close';
      response.writeHead(status, passed);
    } catch (error) {
      fail(attempt, error, request, response);
      return false;
    }
    attempt.timer.refresh();
    return true;
  }

  /**
   * A kept connection can be closed by the service just as we write to it. What was asked for with GET may be asked
   * again (RFC 9110 §9.2.2); for other methods nobody knows whether it was done.
   */
  function isStale(error: unknown, request: Request, { sending }: Attempt): boolean {
    const { code = '' } = error as NodeJS.ErrnoException;
    const broke = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(code);
    return broke && request.method === 'GET' && sending?.isReused === true;
  }

  /** A reply that breaks off ends the client's connection: it must not look complete. */
  function fail(attempt: Attempt, error: unknown, request: Request, response: GatewayResponse): void {
    // The client went away, or this failure has been told already.
    if (attempt.failed || attempt.left || response.destroyed || response.writableEnded) return;
    if (!response.headersSent && !attempt.timedOut && isStale(error, request, attempt)) {
      // So the next one is new, unless another request gives one back just now.
      attempt.instance.connections.closeIdle();
      return send(attempt, request, response);
    }
    if (error instanceof NotConnected) {
      instances.cannotConnect(attempt.instance);
      if (moveOn(attempt, response)) return send(attempt, request, response);
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
    return true;
  }

  /** A body on its way: the service's time begins when it has all of it, and what is wrong with it ends the attempt. */
  function follow(body: Readable, attempt: Attempt, request: Request, response: GatewayResponse): void {
    request.on('data', () => attempt.timer.refresh());
    body.once('error', (error) => {
      if (attempt.failed || attempt.status !== undefined) return;
      attempt.failed = true;
      attempt.sending?.abort();
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
    attempt.sending?.abort();
    fail(attempt, new Error(`nothing came for ${timeouts.response} ms`), request, response);
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
    const span = beginSpan(`${request.method} ${service}`, { kind: 'client' });
    const attempt: Attempt = {
      instance,
      headers: requestHeaders(request.headers, response.locals, span?.headers()),
      moved: false,
      left: false,
      timer: setTimeout(() => giveUp(attempt, request, response), within),
      release,
      span,
      timedOut: false,
      failed: false,
    };
    response.once('close', () => {
      if (attempt.left) return;
      leave(attempt);
      attempt.sending?.abort();
    });
    if (bodyStream) follow(bodyStream, attempt, request, response);
    send(attempt, request, response);
  };
}
