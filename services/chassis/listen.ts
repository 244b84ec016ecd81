import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer, Server as NetServer, type ListenOptions } from 'node:net';
import { ConfigError } from './config.ts';

/** Listening sockets of one port. */
const listenerCount = 16;

async function open(server: NetServer, options: ListenOptions & { port: number; host: string }) {
  server.listen(options);
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    const reason = error.code === 'EADDRINUSE' ? 'the port is in use' : error.message;
    throw new ConfigError(`PORT: cannot listen on ${options.host}:${options.port}: ${reason}`);
  });
}

/** Not http's close, which also ends idle connections whose next request is already being sent. */
const close = (server: NetServer): Promise<unknown> =>
  new Promise((resolve) => NetServer.prototype.close.call(server, resolve));

/**
 * Listens. The returned function stops accepting connections and resolves when none is left. Throws ConfigError if the
 * port is in use.
 *
 * Node accepts one connection per listening socket and turn of the event loop (libuv since 1.45), so under load new clients
 * wait for seconds. On Linux, several sockets therefore share the port (SO_REUSEPORT).
 */
export async function listen(server: Server, port: number, host: string): Promise<() => Promise<unknown>> {
  // With Node's default of 511 a burst of connections waits a second until the kernel retries.
  const options = { port, host, backlog: 4_096 };
  if (process.platform !== 'linux') {
    await open(server, options);
    return () => close(server);
  }
  // With SO_REUSEPORT a second process could share the port; this exclusive attempt refuses that.
  const alone = createServer();
  await open(alone, options);
  await close(alone);
  const more = Array.from({ length: listenerCount - 1 }, () =>
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit('connection', socket)),
  );
  for (const each of [...more, server]) await open(each, { ...options, reusePort: true });
  return () => Promise.all([server, ...more].map(close));
}
