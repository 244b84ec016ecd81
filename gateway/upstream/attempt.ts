import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import {
  beginSpan,
  endRequestSpan,
  HttpError,
  type Logger,
  type Release,
  type Span,
} from '@content-platform/chassis';
import type { GatewayMetrics } from '../metrics.ts';
import type { Refuse } from '../replies/errors.ts';
import { onFinished, type GatewayRequest, type GatewayResponse } from '../request-context.ts';
import { ConnectionFailed } from './connect.ts';
import {
  type Instance,
  isClosedByPeer,
  reasonOf,
  TimedOut,
  upstreamErrors,
  type Transfer,
  type Transport,
} from './transport.ts';
import { forwardBuffered } from './forward-buffered.ts';
import { headersForClient, isForeignReply, type RequestHeaders } from './proxy-headers.ts';

export interface Service {
  name: string;
  instances: { choose(): Instance; chooseOther(failed: Instance): Instance | undefined };
  requestHeaders: RequestHeaders;
  forwardStream: Transport;
  /** Longest wait for the head of a reply, and then for each next chunk; endpoints may allow more. */
  responseMs: number;
  logger: Logger;
  metrics: GatewayMetrics;
  refuse: Refuse;
}

/** `sending` lasts until the client's body is whole. A retry leads back to `connecting`; any state can end. */
type State = 'connecting' | 'sending' | 'waiting' | 'replying' | 'ended';

interface Attempt {
  readonly service: Service;
  readonly request: GatewayRequest;
  readonly response: GatewayResponse;
  readonly headers: IncomingHttpHeaders;
  readonly span: Span | undefined;
  readonly limitMs: number;
  readonly timer: NodeJS.Timeout;
  readonly releaseSlot: Release;
  state: State;
  instance: Instance;
  /** Whether the request was moved to this instance, because it could not connect to another. */
  wasMoved: boolean;
  transfer?: Transfer;
  status?: number;
}

/** Sends a checked request to the service and its reply to the client. Calls `releaseSlot` when the service is done. */
export function startAttempt(service: Service, response: GatewayResponse, releaseSlot: Release): void {
  const { req: request, locals: context } = response;
  const span = beginSpan(`${request.method} ${service.name}`, { kind: 'client' });
  const limitMs = Math.max(service.responseMs, (context.endpoint?.replyWithinSeconds ?? 0) * 1_000);
  const attempt: Attempt = {
    service,
    request,
    response,
    headers: service.requestHeaders(request.headers, context, span?.headers()),
    span,
    limitMs,
    timer: setTimeout(() => handleTimeout(attempt), limitMs),
    releaseSlot,
    state: 'connecting',
    instance: service.instances.choose(),
    wasMoved: false,
  };
  attempt.instance.inFlight += 1;
  onFinished(response, () => end(attempt));
  // When the client reads again, the service has the whole limit for the next chunk.
  response.on('drain', () => attempt.timer.refresh());
  if (context.bodyStream) followBody(attempt, context.bodyStream);
  send(attempt);
}

function send(attempt: Attempt): void {
  const { service, request, response, headers, instance } = attempt;
  attempt.state = 'connecting';
  const transport = response.locals.bodyStream ? service.forwardStream : forwardBuffered;
  attempt.transfer = transport(request, headers, response, instance, {
    onSending() {
      if (attempt.state === 'connecting') attempt.state = request.complete ? 'waiting' : 'sending';
    },
    onHeaders: (status, replied) => passHeaders(attempt, status, replied),
    onData: () => attempt.timer.refresh(),
    onEnd: () => end(attempt, { isComplete: true }),
    onError: (error) => handleError(attempt, error),
  });
}

/** Watches a streamed body: the service's time limit begins at its end, and an error in it ends the attempt. */
function followBody(attempt: Attempt, body: Duplex): void {
  const { service, request, response, timer } = attempt;
  request.on('data', () => timer.refresh());
  request.once('end', () => {
    if (attempt.state === 'sending') attempt.state = 'waiting';
  });
  body.once('error', (error) => {
    if (attempt.state === 'replying' || attempt.state === 'ended') return;
    end(attempt);
    service.refuse(response, error);
  });
}

/** Forwards the head of a reply to the client; returns false if that is impossible. */
function passHeaders(attempt: Attempt, status: number, headers: IncomingHttpHeaders): boolean {
  const { request, response, timer } = attempt;
  const { locals: context } = response;
  attempt.status = status;
  const timing = headers['server-timing'];
  if (typeof timing === 'string') context.serverTiming = timing;
  try {
    if (isForeignReply(status, headers))
      throw new Error(`the reply ${status} does not come from the service`);
    const passed = headersForClient(headers, context.endpoint);
    if (!request.complete) passed.connection = 'close';
    response.writeHead(status, { ...context.replyHeaders, ...passed });
  } catch (error) {
    handleError(attempt, error);
    return false;
  }
  attempt.state = 'replying';
  const reply = context.endpoint?.responses[status];
  // Ends the measured time: how long a file or an export takes depends on the client's network.
  if (reply?.contentType || reply?.isStreamed) context.answeredAt = performance.now();
  timer.refresh();
  return true;
}

function handleTimeout(attempt: Attempt): void {
  const { request, response, state, timer, limitMs } = attempt;
  // The client does not read its reply. The server's idle timeout ends such a connection.
  if (response.writableNeedDrain) return void timer.refresh();
  const { bodyStream } = response.locals;
  // While the stream is full the service does not read, and the gateway does not read from the client.
  const mayClientSend = bodyStream !== undefined && !request.complete && !bodyStream.writableNeedDrain;
  if (mayClientSend && (state === 'connecting' || state === 'sending')) {
    const error = new HttpError('request_timeout', 'Timed out waiting for the rest of the body.');
    return void bodyStream.destroy(error);
  }
  handleError(attempt, new TimedOut(`nothing arrived for ${limitMs} ms`));
}

/** Retries a request whose connection failed if that is safe; answers with an error otherwise. */
function handleError(attempt: Attempt, error: unknown): void {
  const { response, instance } = attempt;
  if (attempt.state === 'ended') return;
  // The client disconnected or was answered already; this is not the service's failure.
  if (response.destroyed || response.writableEnded) return end(attempt);
  if (mayRepeat(attempt, error)) {
    // The next connection is new, unless another request releases one at this moment.
    instance.pool.closeIdle();
    return send(attempt);
  }
  if (error instanceof ConnectionFailed) {
    instance.isReady = false;
    if (moveToAnother(attempt)) return send(attempt);
  }
  fail(attempt, error);
}

/** Whether to repeat a GET or HEAD (RFC 9110 §9.2.2), because the service closed the pooled connection meanwhile. */
function mayRepeat({ request, state, transfer }: Attempt, error: unknown): boolean {
  const isRepeatable = ['GET', 'HEAD'].includes(request.method) && state !== 'replying';
  return isRepeatable && isClosedByPeer(error) && transfer?.isReused() === true;
}

/** Moves a request that was never sent to another instance, once; a body that is being streamed cannot move. */
function moveToAnother(attempt: Attempt): boolean {
  const { instance, service, response } = attempt;
  const other = service.instances.chooseOther(instance);
  if (!other || attempt.wasMoved || response.locals.bodyStream) return false;
  instance.inFlight -= 1;
  other.inFlight += 1;
  attempt.wasMoved = true;
  attempt.instance = other;
  return true;
}

/** Ends an attempt with an error for the client. A reply that has begun is cut, so that it does not look complete. */
function fail(attempt: Attempt, error: unknown): void {
  const { service, request, response, span } = attempt;
  const { name, logger, metrics, refuse } = service;
  const reason = reasonOf(error);
  span?.fail(error);
  end(attempt);
  metrics.upstreamErrors.inc({ service: name, reason });
  if (!response.headersSent) return refuse(response, upstreamErrors[reason](error));
  const { requestId, span: requestSpan } = response.locals;
  const ids = { request_id: requestId, trace_id: requestSpan?.traceId };
  logger.warn({ ...ids, upstream: name, error }, 'reply cut off; the client got an incomplete reply');
  // Not response.destroy(): a pipelined reply has no socket until the earlier replies are sent.
  request.socket.destroy();
}

/** Ends an attempt, and releases its slot without waiting for a client that pipelines and does not read. */
function end(attempt: Attempt, { isComplete = false } = {}): void {
  if (attempt.state === 'ended') return;
  attempt.state = 'ended';
  attempt.instance.inFlight -= 1;
  clearTimeout(attempt.timer);
  attempt.releaseSlot();
  endRequestSpan(attempt.span, attempt.status);
  if (!isComplete) attempt.transfer?.abort();
}
