import type { OutgoingHttpHeaders } from 'node:http';
import type { Request } from 'express';
import { endAfterBody, envelope, hasBody, toHttpError, type Logger } from '@content-platform/chassis';
import type { GatewayResponse } from './exchange.ts';

/**
 * Answers with `body`. When the request's body is still coming, the reply is sent first, whole, and what comes is read
 * and thrown away for `drainMs` at most.
 */
export function reply(
  request: Request,
  response: GatewayResponse,
  { status, headers, body }: { status: number; headers: OutgoingHttpHeaders; body: string },
  drainMs: number,
): void {
  if (response.headersSent || response.destroyed) return;
  // What goes on as it comes has left its headers to the request that takes it on.
  const stillComing = (hasBody(request) || response.locals.bodyStream !== undefined) && !request.complete;
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    ...headers,
    ...(stillComing ? { Connection: 'close' } : {}),
  });
  if (!stillComing) return void response.end(body);
  response.write(body);
  response.locals.answeredAt = performance.now();
  endAfterBody(request, response, drainMs);
}

/** Answers with what `thrown` says, in the envelope; whatever is not an HttpError is a masked 500. */
export function createRefusal(logger: Logger, drainMs: number) {
  return (request: Request, response: GatewayResponse, thrown: unknown): void => {
    if (response.headersSent || response.destroyed) return;
    const { requestId, span, endpoint, bodyStream } = response.locals;
    const error = toHttpError(thrown);
    // The service shall not wait for the rest.
    bodyStream?.destroy(error);
    if (error.status >= 500) {
      logger.error(
        {
          request_id: requestId,
          trace_id: span?.traceId,
          route: endpoint?.path,
          error: error.cause ?? error,
        },
        'a request failed',
      );
    }
    const body = JSON.stringify(envelope(error, requestId));
    const headers = { 'Cache-Control': 'no-store', ...error.headers };
    reply(request, response, { status: error.status, headers, body }, drainMs);
  };
}

export type Refuse = ReturnType<typeof createRefusal>;
