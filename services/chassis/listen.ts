import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { createServer, Server as NetServer, type ListenOptions, type Socket } from 'node:net';
import { ConfigError } from './config.ts';
import { repliesOf } from './context.ts';

const listenerCount = 16;

async function open(server: NetServer, options: ListenOptions & { port: number; host: string }) {
  server.listen(options);
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    const reason = error.code === 'EADDRINUSE' ? 'the port is in use' : error.message;
    const setting = /^(EADDRINUSE|EACCES)$/.test(error.code ?? '') ? 'PORT' : 'HOST';
    throw new ConfigError(`${setting}: cannot listen on ${options.host}:${options.port}: ${reason}`);
  });
}

/** Not http's close, which also ends idle connections whose next request is already being sent. */
const close = (server: NetServer): Promise<unknown> =>
  new Promise((resolve) => NetServer.prototype.close.call(server, resolve));

/**
 * Listens. The returned function stops accepting and resolves when no connection is left. Throws ConfigError. On
 * Linux, several sockets share the port (SO_REUSEPORT): Node accepts one connection per socket and turn of the event
 * loop, so under load new clients would wait for seconds.
 */
export async function listen(server: Server, port: number, host: string): Promise<() => Promise<unknown>> {
  // With Node's default of 511, connections of a burst wait a second until the kernel retries.
  const options = { port, host, backlog: 4_096 };
  if (process.platform !== 'linux') {
    await open(server, options);
    return () => close(server);
  }
  // With SO_REUSEPORT a second process could share the port; this exclusive attempt refuses that.
  const exclusiveProbe = createServer();
  await open(exclusiveProbe, options);
  await close(exclusiveProbe);
  const more = Array.from({ length: listenerCount - 1 }, () =>
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit('connection', socket)),
  );
  for (const each of [...more, server]) await open(each, { ...options, reusePort: true });
  return () => Promise.all([server, ...more].map(close));
}

/** Time in which an idle client may still send a request. Its reply then has `Connection: close`. */
const idleGraceMs = 1_000;
const checkIntervalMs = 50;

/**
 * Prepares `server`, before it listens, for a shutdown. The returned function adds `Connection: close` to replies that
 * have not begun, closes idle connections, and resolves when none is left. `close` of `listen` stops accepting.
 */
export function createGracefulShutdown(server: Server): (close: () => Promise<unknown>) => Promise<void> {
  const sockets = new Set<Socket>();
  const pending = repliesOf(server);

  /** RFC 9112 §9.6: the client then sends its next request on another connection. */
  function announceClose(response: ServerResponse): void {
    if (!response.headersSent) response.setHeader('Connection', 'close');
  }

  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });

  function closeIdle(): void {
    const busy = new Set(pending.map(({ req }) => req.socket));
    for (const socket of sockets) if (!busy.has(socket)) socket.destroy();
  }

  return async (close) => {
    const since = performance.now();
    pending.forEach(announceClose);
    server.prependListener('request', (_request, response) => announceClose(response));
    const closed = close();
    const timer = setInterval(() => performance.now() - since > idleGraceMs && closeIdle(), checkIntervalMs);
    await closed;
    clearInterval(timer);
  };
}
