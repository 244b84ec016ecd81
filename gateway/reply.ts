import type { OutgoingHttpHeaders } from 'node:http';
import type { Request } from 'express';
import { envelope, hasBody, toHttpError, type Logger } from '@content-platform/chassis';
import type { GatewayResponse } from './exchange.ts';

/**
 * Answers with `body`. When the request's body is still coming, the reply is sent first, whole, and what comes is read
 * and thrown away for `drainMs` at most: a connection closed on a client that is still sending is reset, and the client
 * would lose the reply with it (RFC 9112 §9.6).
 */
export function reply(
  request: Request,
  response: GatewayResponse,
  { status, headers, body }: { status: number; headers: OutgoingHttpHeaders; body: string },
  drainMs: number,
): void {
  if (response.headersSent || response.destroyed) return;
  const stillComing = hasBody(request) && !request.complete;
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    ...headers,
    ...(stillComing ? { Connection: 'close' } : {}),
  });
  if (!stillComing) return void response.end(body);
  response.write(body);
  response.locals.answeredAt = performance.now();
  const end = () => response.end();
  const timer = setTimeout(end, drainMs);
  request.once('close', () => {
    clearTimeout(timer);
    end();
  });
  request.resume();
}

/** Answers with what `thrown` says, in the envelope; whatever is not an HttpError is a masked 500. */
export function createRefusal(logger: Logger, drainMs: number) {
  return (request: Request, response: GatewayResponse, thrown: unknown): void => {
    if (response.headersSent || response.destroyed) return;
    const { requestId, endpoint } = response.locals;
    const error = toHttpError(thrown);
    if (error.status >= 500) {
      logger.error(
        { request_id: requestId, route: endpoint?.path, error: error.cause ?? error },
        'a request failed',
      );
    }
    const body = JSON.stringify(envelope(error, requestId));
    const headers = { 'Cache-Control': 'no-store', ...error.headers };
    reply(request, response, { status: error.status, headers, body }, drainMs);
  };
}

export type Refuse = ReturnType<typeof createRefusal>;
