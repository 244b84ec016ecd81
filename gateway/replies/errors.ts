import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import {
  endAfterBody,
  envelope,
  hasBody,
  toHttpError,
  type HttpError,
  type Logger,
} from '@content-platform/chassis';
import type { RequestContext } from '../request-context.ts';

/** Load shedding refuses requests that have no context yet, so `locals` may be undefined. */
export type AnyResponse = ServerResponse & { locals?: RequestContext };

export function errorReply(error: HttpError, requestId: string) {
  const body = JSON.stringify(envelope(error, requestId));
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-request-id': requestId,
    ...error.headers,
  };
  return { headers, body };
}

/** Sends an error's reply. If the body is still arriving, its rest is then read and discarded for `drainMs` at most. */
export function sendError(
  response: AnyResponse,
  error: HttpError,
  requestId: string,
  drainMs: number,
  moreHeaders?: OutgoingHttpHeaders,
): void {
  const { headers, body } = errorReply(error, requestId);
  const { req: request, locals: context } = response;
  // hasBody() cannot tell for a streamed request, whose headers the forwarding has replaced.
  const isArriving = (hasBody(request) || context?.bodyStream !== undefined) && !request.complete;
  const closing = isArriving && { Connection: 'close' };
  response.writeHead(error.status, { ...context?.replyHeaders, ...headers, ...moreHeaders, ...closing });
  if (!isArriving) return void response.end(body);
  response.write(body);
  if (context) context.answeredAt = performance.now();
  endAfterBody(request, response, drainMs);
}

/** Answers a request with an error. Has no effect after load shedding, which creates no context. */
export type Refuse = (response: AnyResponse, thrown: unknown) => void;

/** Sends the reply of a thrown error, as toHttpError() converts it. Logs the cause of a 5xx. */
export function createRefusal(logger: Logger, drainMs: number): Refuse {
  return (response, thrown) => {
    const { locals: context } = response;
    if (response.headersSent || response.destroyed || !context) return;
    const { requestId, span, endpoint, bodyStream } = context;
    const error = toHttpError(thrown);
    // The service must not wait for the rest of the body.
    bodyStream?.destroy(error);
    if (error.status >= 500) {
      const ids = { request_id: requestId, trace_id: span?.traceId };
      logger.error({ ...ids, route: endpoint?.path, error: error.cause ?? error }, 'request failed');
    }
    sendError(response, error, requestId, drainMs);
  };
}
