import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer, Server as NetServer, type ListenOptions } from 'node:net';
import { ConfigError } from './config.ts';

/** Listening sockets of one port. */
const doors = 16;

async function open(server: NetServer, options: ListenOptions & { port: number; host: string }) {
  server.listen(options);
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    const reason = error.code === 'EADDRINUSE' ? 'the port is taken' : error.message;
    throw new ConfigError(`PORT: cannot listen on ${options.host}:${options.port}: ${reason}`);
  });
}

/** http's own close also ends the connections whose next request is on its way just now. */
const close = (server: NetServer): Promise<unknown> =>
  new Promise((resolve) => NetServer.prototype.close.call(server, resolve));

/**
 * Listens; what comes back accepts nothing more, and resolves when no connection is left. Throws ConfigError when it
 * cannot.
 *
 * Node takes one new connection from a listening socket in each turn of its event loop (libuv since 1.45): when turns are
 * long, since there is much to do, new clients wait for seconds, and nobody even tells them that. So where the system
 * spreads connections over several sockets of one port (Linux, SO_REUSEPORT) there are several.
 */
export async function listen(server: Server, port: number, host: string): Promise<() => Promise<unknown>> {
  // Node's 511 makes a burst of connections wait a second for the kernel to try again.
  const options = { port, host, backlog: 4_096 };
  if (process.platform !== 'linux') {
    await open(server, options);
    return () => close(server);
  }
  // Another process of ours could join in, and each would get a part: this one may not.
  const alone = createServer();
  await open(alone, options);
  await close(alone);
  const more = Array.from({ length: doors - 1 }, () =>
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit('connection', socket)),
  );
  for (const each of [...more, server]) await open(each, { ...options, reusePort: true });
  return () => Promise.all([server, ...more].map(close));
}
