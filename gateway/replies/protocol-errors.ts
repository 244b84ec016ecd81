import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { HttpError, repliesOf, requestId, type Logger } from '@content-platform/chassis';
import { type AnyResponse, errorReply, type Refuse } from './errors.ts';

const notAPath = () => new HttpError('malformed_target', 'The target must be a path.');

/** The errors of Node's parser and timers, by code, that are not simply `malformed_request`. */
const known: Record<string, () => HttpError> = {
  HPE_INVALID_URL: notAPath,
  HPE_HEADER_OVERFLOW: () =>
    new HttpError('headers_too_large', 'The header is larger than 16 KB or has more than 1,000 headers.'),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: () =>
    new HttpError('payload_too_large', "The body's chunk extensions are too large."),
  ERR_HTTP_REQUEST_TIMEOUT: () => new HttpError('request_timeout', 'Timed out waiting for the request.'),
};

function toError({ code = '' }: NodeJS.ErrnoException): HttpError {
  return known[code]?.() ?? new HttpError('malformed_request', 'The request is not well-formed HTTP.');
}

/** Ends a connection once all replies are written. Discards further bytes of the client for `drainMs` at most. */
function end(socket: Duplex, drainMs: number): void {
  socket.end();
  const timer = setTimeout(() => socket.destroy(), drainMs);
  socket.once('close', () => clearTimeout(timer));
}

/** Writes an error's reply to a connection that has no request, and ends the connection. */
function answer(socket: Duplex, error: HttpError, drainMs: number): void {
  const { headers, body } = errorReply(error, requestId(undefined));
  const head = Object.entries({ ...headers, Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  socket.write(`HTTP/1.1 ${error.status} ${error.error}\r\n${head.join('\r\n')}\r\n\r\n${body}`);
  end(socket, drainMs);
}

/** Sends the error envelope for malformed heads, timeouts and CONNECT. `refuse` answers requests with a good head. */
export function answerProtocolErrors(server: Server, logger: Logger, drainMs: number, refuse: Refuse): void {
  const pending: readonly AnyResponse[] = repliesOf(server);
  /** Connections whose first error was handled. The parser discards each later chunk and reports another error. */
  const handled = new WeakSet<Duplex>();

  /** A connection has several unfinished replies if the client pipelines requests. */
  const lastPending = (socket: Duplex) => pending.findLast(({ req }) => req.socket === socket);

  /** Ends the connection after its pending replies. Sends no error: a client could take it for one of them. */
  function endAfter(response: ServerResponse, socket: Duplex): void {
    response.once('finish', () => end(socket, drainMs));
  }

  server.on('clientError', (cause: NodeJS.ErrnoException, socket) => {
    if (handled.has(socket)) return;
    handled.add(socket);
    logger.debug({ code: cause.code }, 'malformed request refused');
    if (cause.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    const response = lastPending(socket);
    if (!response) answer(socket, toError(cause), drainMs);
    else if (response.req.complete) endAfter(response, socket);
    // The request is queued, and has no context for a reply yet.
    else if (!response.locals) socket.destroy();
    // The body of this request is malformed. A reply that has begun is completed, and then ends the connection.
    else if (!response.headersSent) refuse(response, toError(cause));
  });

  server.on('connect', (_request, socket) => {
    socket.on('error', () => undefined).resume();
    // Node no longer watches the socket: without these two listeners, earlier requests might never end.
    socket.once('timeout', () => socket.destroy());
    socket.once('close', () => {
      for (const each of pending.filter(({ req }) => req.socket === socket)) each.destroy();
    });
    const response = lastPending(socket);
    if (response) endAfter(response, socket);
    else answer(socket, notAPath(), drainMs);
  });
  // Unknown expectations may be ignored (RFC 9110 §10.1.1); Node's own reply has no envelope.
  server.on('checkExpectation', (request, response) => void server.emit('request', request, response));
}
