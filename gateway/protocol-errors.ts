import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { envelope, HttpError, requestId, type Logger } from '@content-platform/chassis';

/** What Node's parser and its timers report, as far as it is not simply malformed. */
const known: Record<string, () => HttpError> = {
  HPE_INVALID_URL: () => new HttpError(400, 'malformed_target', 'The target must be a path.'),
  HPE_HEADER_OVERFLOW: () =>
    new HttpError(
      431,
      'headers_too_large',
      'The header block is larger than 16 KB or has more than 1,000 headers.',
    ),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: () =>
    new HttpError(413, 'payload_too_large', "The body's chunk extensions are too large."),
  ERR_HTTP_REQUEST_TIMEOUT: () =>
    new HttpError(408, 'request_timeout', 'The request did not arrive in time.'),
};

function toError({ code = '' }: NodeJS.ErrnoException): HttpError {
  return known[code]?.() ?? new HttpError(400, 'malformed_request', 'The request is not well-formed HTTP.');
}

/** Ends a connection when all that was written is out; what still comes is thrown away for `drainMs` at most. */
function end(socket: Duplex, drainMs: number): void {
  socket.end();
  const timer = setTimeout(() => socket.destroy(), drainMs);
  socket.once('close', () => clearTimeout(timer));
}

/** Writes the envelope on a bare connection and ends it. */
function answer(socket: Duplex, error: HttpError, drainMs: number): void {
  const id = requestId(undefined);
  const body = JSON.stringify(envelope(error, id));
  const head = [
    `HTTP/1.1 ${error.status} ${error.error}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    `X-Request-Id: ${id}`,
    'Connection: close',
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  end(socket, drainMs);
}

export interface ProtocolErrorOptions {
  logger: Logger;
  drainMs: number;
  /** Answers a request whose head was fine. */
  refuse: (request: IncomingMessage, response: ServerResponse, error: HttpError) => void;
}

/** Gives every request an answer in the envelope that never becomes a request: malformed, too slow, or for a tunnel. */
export function answerProtocolErrors(
  server: Server,
  { logger, drainMs, refuse }: ProtocolErrorOptions,
): void {
  /** Replies that are not out yet, by connection: several when a client sends requests ahead. */
  const pending = new WeakMap<Duplex, Set<ServerResponse>>();
  /** The parser goes on reading, and reports each further piece as another error: that is how they are drained. */
  const answered = new WeakSet<Duplex>();
  server.prependListener('request', (request, response) => {
    const replies = pending.get(request.socket) ?? new Set();
    pending.set(request.socket, replies.add(response));
    response.once('close', () => replies.delete(response));
  });

  const lastPending = (socket: Duplex) => [...(pending.get(socket) ?? [])].at(-1);

  /** An answer to a bad request that comes behind good ones would be taken for one to those: they get theirs first. */
  function endAfter(response: ServerResponse, socket: Duplex): void {
    response.once('finish', () => end(socket, drainMs));
  }

  server.on('clientError', (cause: NodeJS.ErrnoException, socket) => {
    if (answered.has(socket)) return;
    answered.add(socket);
    logger.debug({ code: cause.code }, 'a malformed request');
    if (cause.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    const response = lastPending(socket);
    if (!response) answer(socket, toError(cause), drainMs);
    else if (response.req.complete) endAfter(response, socket);
    // It is the body of this one. A reply that is on its way already stands, and ends the connection by itself.
    else if (!response.headersSent) refuse(response.req, response, toError(cause));
  });

  // There is nothing to connect to: the target of CONNECT is no path.
  server.on('connect', (_request, socket) => {
    socket.on('error', () => undefined).resume();
    const response = lastPending(socket);
    if (response) endAfter(response, socket);
    else answer(socket, new HttpError(400, 'malformed_target', 'The target must be a path.'), drainMs);
  });
  // Expectations that Node does not know may be ignored (RFC 9110 §10.1.1); its own answer has no envelope.
  server.on('checkExpectation', (request, response) => void server.emit('request', request, response));
}
