import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A client that is between two requests may send the next one for so long: it is answered, and told to close. */
const graceMs = 1_000;
const lookEveryMs = 50;

/**
 * Call it before `server` listens. What comes back stops the server: nothing new is accepted, which is what `close` of
 * `listen` does, every reply that is not under way yet says `Connection: close`, connections without a request are
 * closed, and it resolves when none is left. It waits for requests as long as they take.
 */
export function createStop(server: Server): (close: () => Promise<unknown>) => Promise<void> {
  const sockets = new Set<Socket>();
  const pending = new Set<ServerResponse>();
  let stopping = false;

  /** RFC 9112 §9.6: who is told knows that the next request needs another connection. */
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
    const timer = setInterval(() => performance.now() - since > graceMs && closeIdle(), lookEveryMs);
    await closed;
    clearInterval(timer);
  };
}
