import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Time in which an idle client may still send a request. Its reply then has `Connection: close`. */
const idleGraceMs = 1_000;
const checkIntervalMs = 50;

/**
 * Prepares `server` for a graceful shutdown; call it before the server listens. The returned function adds
 * `Connection: close` to every reply that has not begun, closes idle connections, and resolves when no connection is left.
 * It has no time limit. It does not stop accepting connections; `close` of `listen` does.
 */
export function createGracefulShutdown(server: Server): (close: () => Promise<unknown>) => Promise<void> {
  const sockets = new Set<Socket>();
  const pending = new Set<ServerResponse>();
  let stopping = false;

  /** RFC 9112 §9.6: the client then sends its next request on another connection. */
  function announceClose(response: ServerResponse): void {
    if (!response.headersSent) response.setHeader('Connection', 'close');
  }

  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.prependListener('request', (_request, response) => {
    pending.add(response);
    response.once('close', () => pending.delete(response));
    if (stopping) announceClose(response);
  });

  function closeIdle(): void {
    const busy = new Set([...pending].map(({ req }) => req.socket));
    for (const socket of sockets) if (!busy.has(socket)) socket.destroy();
  }

  return async (close) => {
    stopping = true;
    const since = performance.now();
    pending.forEach(announceClose);
    const closed = close();
    const timer = setInterval(() => performance.now() - since > idleGraceMs && closeIdle(), checkIntervalMs);
    await closed;
    clearInterval(timer);
  };
}
